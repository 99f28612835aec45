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
    call('HDEL', P .. 'relay-cards', owner)
end

local function lane_at(lane) return P .. 'lane:' .. lane end

local function forget_suspect(lane)
    call('HDEL', lane_at(lane), 'suspect_first', 'suspect_last', 'suspect_id', 'suspect_leg', 'suspect_by',
        'suspect_crashed_by')
end

-- What the owner was working on is no suspect; what others left is.
local function give_up(lane, owner)
    call('HDEL', lane_at(lane), 'owner')
    if call('HGET', lane_at(lane), 'suspect_by') == owner then forget_suspect(lane) end
    call('HINCRBY', lane_at(lane), 'epoch', 1)
end

-- Lists of owners have a space behind each; twenty are counted.
local function add_crash(at, field, owner)
    call('HSET', at, field, string.sub((call('HGET', at, field) or '') .. owner .. ' ', -20 * 37))
end

local function take_back_crash(at, field, owner)
    local list = call('HGET', at, field)
    local from, to = string.find(list or '', owner .. ' ', 1, true)
    if from then call('HSET', at, field, string.sub(list, 1, from - 1) .. string.sub(list, to + 1)) end
end

local function crashes(list) return int(math.floor(#(list or '') / 37)) end

local function is_owner(owner, lane) return call('HGET', lane_at(lane), 'owner') == owner end

local verbs = {}

function verbs.enlist()
    set_lease()
    call('HSET', P .. 'relay-names', args.owner, args.name)
    call('HSET', P .. 'relay-cards', args.owner, cjson.encode({ args.config, args.routes, args.version }))
end

function verbs.heartbeat()
    -- Its owner lives, so it may renew a lease that is too far ahead.
    local alive = tonumber(call('ZSCORE', P .. 'relays', args.owner) or 0) > now
    if alive then set_lease() end
    local valid = {}
    for _, owner in ipairs(call('ZRANGE', P .. 'relays', 0, -1)) do
        if has_lease(owner) then
            local card = cjson.decode(call('HGET', P .. 'relay-cards', owner) or '["",""]')
            valid[#valid + 1] = { owner, card[1], card[2] }
        end
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
            local row = call('HMGET', at, 'crashed_by', 'suspect_first', 'suspect_last', 'suspect_leg', 'suspect_id',
                'suspect_crashed_by')
            grants[#grants + 1] = { lane, epoch, crashes(row[1]), row[2], row[3], row[4], row[5], crashes(row[6]) }
        end
    end
    return grants
end

function verbs.release()
    for _, lane in ipairs(args.lanes) do
        if is_owner(args.owner, lane) then give_up(lane, args.owner) end
    end
end

function verbs.retire()
    for lane = 0, LANES - 1 do
        if is_owner(args.owner, lane) then
            give_up(lane, args.owner)
            call('HDEL', lane_at(lane), 'crashed_by')
        end
        -- It lives: what was counted against it was no crash.
        take_back_crash(lane_at(lane), 'crashed_by', args.owner)
        take_back_crash(lane_at(lane), 'suspect_crashed_by', args.owner)
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
        local row = call('HMGET', at, 'owner', 'suspect_by')
        if row[1] and not call('ZSCORE', P .. 'relays', row[1]) then
            call('HDEL', at, 'owner', 'suspect_by')
            call('HINCRBY', at, 'epoch', 1)
            add_crash(at, 'crashed_by', row[1])
            if row[2] == row[1] then add_crash(at, 'suspect_crashed_by', row[1]) end
            freed = freed + 1
        end
    end
    return freed
end

function verbs.absolve()
    for _, lane in ipairs(args.lanes) do
        if is_owner(args.owner, lane) then
            call('HDEL', lane_at(lane), 'crashed_by')
            forget_suspect(lane)
        end
    end
end

function verbs.suspect()
    if not is_owner(args.owner, args.lane) then return end
    local at = lane_at(args.lane)
    local row = call('HMGET', at, 'suspect_first', 'suspect_last', 'suspect_leg', 'suspect_id')
    local same = args.first and row[1] == args.first and row[2] == args.last and (row[3] or nil) == args.leg
        and (row[4] or nil) == args.id
    if not same then forget_suspect(args.lane) end
    if args.first then
        call('HSET', at, 'suspect_first', args.first, 'suspect_last', args.last, 'suspect_by', args.owner)
    end
    if args.id then call('HSET', at, 'suspect_id', args.id) end
    if args.leg then call('HSET', at, 'suspect_leg', args.leg) end
    -- Other lanes have no suspect that this owner has noted.
    for lane = 0, LANES - 1 do
        if lane ~= args.lane and call('HGET', lane_at(lane), 'suspect_by') == args.owner then forget_suspect(lane) end
    end
end
