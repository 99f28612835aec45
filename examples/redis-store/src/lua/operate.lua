-- Commands for operators.

-- Every row: table, lane, member, content, key, state, due, attempts, error, ended, whether it blocks, and its history.
function verbs.all()
    local rows = {}
    local function add(room, lane, member, blocking)
        local row = call('HMGET', row_at(lane, member), 'content', 'state', 'due', 'attempts', 'error', 'ended', 'key')
        local tried = call('LRANGE', history_at(lane, member), 0, -1)
        local is_blocking = blocking and row[7] and call('ZSCORE', blocking_at(lane, row[7]), member)
        rows[#rows + 1] = {
            room, lane, member, row[1], row[2], row[3], row[4], row[5], row[6], is_blocking and 1 or 0, tried,
        }
    end
    for lane = 0, LANES - 1 do
        for _, member in ipairs(call('ZRANGE', P .. 'ready:' .. lane, 0, -1)) do
            local content = call('HGET', P .. 'ready-row:' .. lane, member)
            rows[#rows + 1] = { 'ready', lane, member, content, false, false, '0', false, false, 0, {} }
        end
        for _, member in ipairs(call('ZRANGE', P .. 'waiting:' .. lane, 0, -1)) do add('waiting', lane, member, false) end
        for _, member in ipairs(call('ZRANGE', P .. 'dead:' .. lane, 0, -1)) do add('dead', lane, member, true) end
    end
    local delivered = call('ZRANGE', P .. 'delivered', 0, -1, 'WITHSCORES')
    for at = 1, #delivered, 2 do
        local row = call('HMGET', P .. 'kept:' .. delivered[at], 'content', 'attempts')
        local lane, member = string.match(delivered[at], '^(%d+):(.*)$')
        local tried = call('LRANGE', P .. 'kept-history:' .. delivered[at], 0, -1)
        rows[#rows + 1] = {
            'delivered', tonumber(lane), member, row[1], false, false, row[2], false, delivered[at + 1], 0, tried,
        }
    end
    return { int(now), rows }
end

local function audit(affected)
    call('LPUSH', P .. 'audit', cjson.encode({ at = int(now), what = args.audit, affected = affected }))
    return affected
end

-- Removes the expiry date of an expired message; it is the last field of the content.
local function without_past_date(content)
    local expires = string.match(content, '"expires_at":(%-?%d+)}$')
    if not expires or tonumber(expires) > now then return content end
    return (string.gsub(content, '"expires_at":%-?%d+}$', '"expires_at":null}'))
end

-- Audits one batch of a command: the first batch writes a row, the others add to it. Returns the position of the row
-- from the end, which does not change when rows are added at the front.
local function audit_batch(affected)
    local row = args.audit.row
    if not row then
        audit(affected)
        return call('LLEN', P .. 'audit')
    end
    local noted = cjson.decode(call('LINDEX', P .. 'audit', -row))
    noted.affected = noted.affected + affected
    call('LSET', P .. 'audit', -row, cjson.encode(noted))
    return row
end

function verbs.retry_dead()
    local affected = 0
    for _, place in ipairs(args.places) do
        local lane, member = place[1], place[2]
        if not call('ZSCORE', P .. 'waiting:' .. lane, member) then
            local row = take_dead(lane, member)
            if row then
                row.state, row.due, row.attempts = 'retry', now, 0
                row.content = without_past_date(row.content)
                put_waiting(lane, member, row)
                affected = affected + 1
            end
        end
    end
    return { affected, audit_batch(affected) }
end

function verbs.discard_dead()
    local affected, freed = 0, {}
    for _, place in ipairs(args.places) do
        local row, blocked = take_dead(place[1], place[2])
        if row then
            call('DEL', history_at(place[1], place[2]))
            affected = affected + 1
            if blocked then freed[#freed + 1] = { place[1], row.key, sink_of(place[2]) } end
        end
    end
    for _, at in ipairs(freed) do follow_on(at[1], at[2], at[3]) end
    return { affected, audit_batch(affected) }
end

function verbs.release_key()
    local freed = {}
    for lane = 0, LANES - 1 do
        for _, member in ipairs(call('ZRANGE', blocking_at(lane, args.key), 0, -1)) do
            if not args.sink or sink_of(member) == args.sink then
                call('ZREM', blocking_at(lane, args.key), member)
                freed[#freed + 1] = { lane, sink_of(member) }
            end
        end
    end
    for _, at in ipairs(freed) do follow_on(at[1], args.key, at[2]) end
    return audit(#freed)
end

function verbs.retry_waiting()
    local affected = 0
    for _, place in ipairs(args.places) do
        local lane, member = place[1], place[2]
        local row = call('ZSCORE', P .. 'waiting:' .. lane, member) and get(lane, member)
        local late = row and row.due and row.due > now
        local tried = row and args.reset and (row.attempts > 0 or row.error)
        if row and row.state ~= 'blocked' and (late or tried) then
            if late then set_due(lane, member, now) end
            if args.reset then
                call('HSET', row_at(lane, member), 'attempts', 0)
                call('HDEL', row_at(lane, member), 'error')
            end
            affected = affected + 1
        end
    end
    return { affected, audit_batch(affected) }
end

function verbs.pause()
    local pause = cjson.encode({ since = int(now), by = args.by })
    return audit(call('HSETNX', P .. 'paused', args.what, pause))
end

function verbs.resume()
    return audit(call('HDEL', P .. 'paused', args.what))
end

function verbs.wake()
    for _, place in ipairs(args.places) do
        local row = call('ZSCORE', P .. 'waiting:' .. place[1], place[2]) and get(place[1], place[2])
        if row and row.due and row.due > now then set_due(place[1], place[2], now) end
    end
    return #args.places
end

-- A dead letter that blocks its key is never old: an operator must act on it.
local function is_old_letter(lane, member)
    local row = call('HMGET', row_at(lane, member), 'ended', 'key')
    local is_blocking = row[2] and call('ZSCORE', blocking_at(lane, row[2]), member)
    return not is_blocking and tonumber(row[1]) <= now - args.dead
end

function verbs.clean_count()
    local old, all = 0, 0
    if args.delivered then
        old = call('ZCOUNT', P .. 'delivered', '-inf', int(now - args.delivered))
        all = call('ZCARD', P .. 'delivered')
    end
    for lane = 0, args.dead and LANES - 1 or -1 do
        for _, member in ipairs(call('ZRANGE', P .. 'dead:' .. lane, 0, -1)) do
            if is_old_letter(lane, member) then old = old + 1 end
            all = all + 1
        end
    end
    return { old, all }
end

function verbs.clean_up()
    local deleted = 0
    local function goes()
        if deleted == args.limit then return false end
        deleted = deleted + 1
        return true
    end
    if args.delivered then
        for _, at in ipairs(call('ZRANGEBYSCORE', P .. 'delivered', '-inf', int(now - args.delivered))) do
            if goes() then
                call('ZREM', P .. 'delivered', at)
                call('DEL', P .. 'kept:' .. at, P .. 'kept-history:' .. at)
            end
        end
    end
    for lane = 0, args.dead and LANES - 1 or -1 do
        for _, member in ipairs(call('ZRANGE', P .. 'dead:' .. lane, 0, -1)) do
            if is_old_letter(lane, member) and goes() then
                take_dead(lane, member)
                call('DEL', history_at(lane, member))
            end
        end
    end
    return { deleted, args.audit and audit_batch(deleted) or 0 }
end

function verbs.reap_gone() return audit(verbs.evict()) end

function verbs.lane_views()
    local views = {}
    for lane = 0, LANES - 1 do
        local row = call('HMGET', lane_at(lane), 'epoch', 'owner', 'crashed_by')
        local name = row[2] and call('HGET', P .. 'relay-names', row[2])
        local till = row[2] and has_lease(row[2]) and call('ZSCORE', P .. 'relays', row[2])
        views[#views + 1] = { row[1] or '0', row[2], name, till, crashes(row[3]), call('ZCARD', P .. 'ready:' .. lane) }
    end
    return views
end

function verbs.pauses() return call('HGETALL', P .. 'paused') end

function verbs.audits() return call('LRANGE', P .. 'audit', 0, args.limit - 1) end

function verbs.now() return int(now) end
