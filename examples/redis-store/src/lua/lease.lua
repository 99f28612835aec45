-- Leases: who holds which lane.

-- A lease that ends further ahead than it is long is none: the clock was set back, and nobody would take over for as long.
local function has_lease(owner)
    local till = tonumber(call('ZSCORE', P .. 'relays', owner) or 0)
    local lease = tonumber(call('HGET', P .. 'relay-leases', owner) or 0)
    return till > now and till <= now + lease * 1.2
end

local function set_lease()
    call('ZADD', P .. 'relays', int(now + args.lease), args.owner)
    call('HSET', P .. 'relay-leases', args.owner, args.lease)
end

local function strike_off(owner)
    call('ZREM', P .. 'relays', owner)
    call('HDEL', P .. 'relay-names', owner)
    call('HDEL', P .. 'relay-leases', owner)
end

local function lane_at(lane) return P .. 'lane:' .. lane end

local function give_up(lane)
    call('HDEL', lane_at(lane), 'owner', 'suspect_seq', 'suspect_id', 'suspect_leg', 'suspect_crashes')
    call('HINCRBY', lane_at(lane), 'epoch', 1)
end

local function is_owner(owner, lane) return call('HGET', lane_at(lane), 'owner') == owner end

local verbs = {}

function verbs.enlist()
    set_lease()
    call('HSET', P .. 'relay-names', args.owner, args.name)
end

function verbs.heartbeat()
    -- Its owner lives, so it may renew a lease that is too far ahead.
    local alive = tonumber(call('ZSCORE', P .. 'relays', args.owner) or 0) > now
    if alive then set_lease() end
    local valid = {}
    for _, owner in ipairs(call('ZRANGE', P .. 'relays', 0, -1)) do
        if has_lease(owner) then valid[#valid + 1] = owner end
    end
    return { alive and 1 or 0, valid, history() }
end

function verbs.acquire()
    if not has_lease(args.owner) then return redis.error_reply('LEASELOST the lease of the relay has run out') end
    local grants = {}
    for lane = 0, LANES - 1 do
        if #grants == args.limit then break end
        local at = lane_at(lane)
        if call('HSETNX', at, 'owner', args.owner) == 1 then
            local epoch = call('HINCRBY', at, 'epoch', 1)
            local row = call('HMGET', at, 'crashes', 'suspect_seq', 'suspect_leg', 'suspect_crashes', 'suspect_id')
            grants[#grants + 1] = { lane, epoch, row[1] or '0', row[2], row[3], row[4] or '0', row[5] }
        end
    end
    return grants
end

function verbs.release()
    for _, lane in ipairs(args.lanes) do
        if is_owner(args.owner, lane) then give_up(lane) end
    end
end

function verbs.retire()
    for lane = 0, LANES - 1 do
        if is_owner(args.owner, lane) then
            give_up(lane)
            call('HDEL', lane_at(lane), 'crashes')
        end
    end
    strike_off(args.owner)
end

function verbs.evict()
    for _, owner in ipairs(call('ZRANGE', P .. 'relays', 0, -1)) do
        if not has_lease(owner) then strike_off(owner) end
    end
    local freed = 0
    for lane = 0, LANES - 1 do
        local at = lane_at(lane)
        local row = call('HMGET', at, 'owner', 'suspect_seq')
        if row[1] and not call('ZSCORE', P .. 'relays', row[1]) then
            call('HDEL', at, 'owner')
            call('HINCRBY', at, 'epoch', 1)
            call('HINCRBY', at, 'crashes', 1)
            if row[2] then call('HINCRBY', at, 'suspect_crashes', 1) end
            freed = freed + 1
        end
    end
    return freed
end

function verbs.absolve()
    for _, lane in ipairs(args.lanes) do
        if is_owner(args.owner, lane) then call('HDEL', lane_at(lane), 'crashes') end
    end
end

function verbs.suspect()
    if not is_owner(args.owner, args.lane) then return end
    local at = lane_at(args.lane)
    local row = call('HMGET', at, 'suspect_seq', 'suspect_leg', 'suspect_id')
    if not args.seq or row[1] ~= args.seq or row[3] ~= args.id or (row[2] or nil) ~= args.leg then
        call('HDEL', at, 'suspect_seq', 'suspect_id', 'suspect_leg', 'suspect_crashes')
    end
    if args.seq then call('HSET', at, 'suspect_seq', args.seq, 'suspect_id', args.id) end
    if args.leg then call('HSET', at, 'suspect_leg', args.leg) end
end
