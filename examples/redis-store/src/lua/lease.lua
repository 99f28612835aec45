-- Leases: which relay has which lane.

-- A lease that ends further ahead than its length is invalid: the clock was set back, and it would delay takeover.
local function has_lease(owner)
    local till = tonumber(call('ZSCORE', P .. 'relays', owner) or 0)
    local lease = tonumber(call('HGET', P .. 'relay-leases', owner) or 0)
    return till > now and till <= now + lease * 1.2
end

local function set_lease()
    call('ZADD', P .. 'relays', int(now + args.lease), args.owner)
    call('HSET', P .. 'relay-leases', args.owner, args.lease)
end

local function remove_relay(owner)
    call('ZREM', P .. 'relays', owner)
    call('HDEL', P .. 'relay-names', owner)
    call('HDEL', P .. 'relay-leases', owner)
    call('HDEL', P .. 'relay-cards', owner)
end

local function lane_at(lane) return P .. 'lane:' .. lane end

local function forget_quarantine(lane)
    call('HDEL', lane_at(lane), 'quarantine_first', 'quarantine_last', 'quarantine_id', 'quarantine_sink', 'quarantine_by',
        'quarantine_crashed_by')
end

-- The owner's own quarantine ends here. A quarantine that other owners left stays.
local function give_up(lane, owner)
    call('HDEL', lane_at(lane), 'owner')
    if call('HGET', lane_at(lane), 'quarantine_by') == owner then forget_quarantine(lane) end
    call('HINCRBY', lane_at(lane), 'epoch', 1)
end

-- Lists of owners have a space after each; at most twenty are counted.
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

function verbs.register()
    set_lease()
    call('HSET', P .. 'relay-names', args.owner, args.name)
    call('HSET', P .. 'relay-cards', args.owner, cjson.encode({ args.config, args.routes, args.version }))
end

function verbs.heartbeat()
    -- The owner is alive, so it may renew a lease that ends too far in the future.
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
    if not has_lease(args.owner) then return redis.error_reply('LEASELOST the lease of the relay has expired') end
    local grants = {}
    for lane = 0, LANES - 1 do
        if #grants == args.limit then break end
        local at = lane_at(lane)
        if call('HSETNX', at, 'owner', args.owner) == 1 then
            local epoch = call('HINCRBY', at, 'epoch', 1)
            local row = call('HMGET', at, 'crashed_by', 'quarantine_first', 'quarantine_last', 'quarantine_sink', 'quarantine_id',
                'quarantine_crashed_by')
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

function verbs.deregister()
    for lane = 0, LANES - 1 do
        if is_owner(args.owner, lane) then
            give_up(lane, args.owner)
            call('HDEL', lane_at(lane), 'crashed_by')
        end
        -- The relay is alive, so what was counted against it was not a crash.
        take_back_crash(lane_at(lane), 'crashed_by', args.owner)
        take_back_crash(lane_at(lane), 'quarantine_crashed_by', args.owner)
    end
    remove_relay(args.owner)
end

function verbs.evict()
    for _, owner in ipairs(call('ZRANGE', P .. 'relays', 0, -1)) do
        if not has_lease(owner) then remove_relay(owner) end
    end
    local freed = 0
    for lane = 0, LANES - 1 do
        local at = lane_at(lane)
        local row = call('HMGET', at, 'owner', 'quarantine_by')
        if row[1] and not call('ZSCORE', P .. 'relays', row[1]) then
            call('HDEL', at, 'owner', 'quarantine_by')
            call('HINCRBY', at, 'epoch', 1)
            add_crash(at, 'crashed_by', row[1])
            if row[2] == row[1] then add_crash(at, 'quarantine_crashed_by', row[1]) end
            freed = freed + 1
        end
    end
    return freed
end

function verbs.clear_quarantine()
    for _, lane in ipairs(args.lanes) do
        if is_owner(args.owner, lane) then
            call('HDEL', lane_at(lane), 'crashed_by')
            forget_quarantine(lane)
        end
    end
end

function verbs.quarantine()
    if not is_owner(args.owner, args.lane) then return end
    local at = lane_at(args.lane)
    local row = call('HMGET', at, 'quarantine_first', 'quarantine_last', 'quarantine_sink', 'quarantine_id')
    local same = args.first and row[1] == args.first and row[2] == args.last and (row[3] or nil) == args.sink
        and (row[4] or nil) == args.id
    if not same then forget_quarantine(args.lane) end
    if args.first then
        call('HSET', at, 'quarantine_first', args.first, 'quarantine_last', args.last, 'quarantine_by', args.owner)
    end
    if args.id then call('HSET', at, 'quarantine_id', args.id) end
    if args.sink then call('HSET', at, 'quarantine_sink', args.sink) end
    -- Clear the quarantines that this owner has set in other lanes.
    for lane = 0, LANES - 1 do
        if lane ~= args.lane and call('HGET', lane_at(lane), 'quarantine_by') == args.owner then forget_quarantine(lane) end
    end
end
