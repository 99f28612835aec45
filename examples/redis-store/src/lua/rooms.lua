-- Rows: how they are added to a table and removed from it.

local function get(lane, member)
    local row = call('HMGET', row_at(lane, member), 'content', 'key', 'state', 'due', 'attempts', 'error')
    if not row[1] then return nil end
    return {
        content = row[1], key = row[2] or nil, state = row[3], due = row[4] and tonumber(row[4]) or nil,
        attempts = tonumber(row[5]), error = row[6] or nil,
    }
end

local function write(lane, member, row)
    local at = row_at(lane, member)
    call('DEL', at)
    call('HSET', at, 'content', row.content, 'state', row.state, 'attempts', row.attempts)
    if row.key then call('HSET', at, 'key', row.key) end
    if row.error then call('HSET', at, 'error', row.error) end
    return at
end

local function set_due(lane, member, due)
    if due then
        call('HSET', row_at(lane, member), 'due', int(due))
        call('ZADD', P .. 'due:' .. lane, int(due), member)
    else
        call('HDEL', row_at(lane, member), 'due')
        call('ZREM', P .. 'due:' .. lane, member)
    end
end

local function put_waiting(lane, member, row)
    write(lane, member, row)
    call('ZADD', P .. 'waiting:' .. lane, seq_of(member), member)
    if row.key then call('ZADD', key_at(lane, row.key), seq_of(member), member) end
    set_due(lane, member, row.due)
end

-- The history stays: the caller moves the row to another table, or deletes its history.
local function take_waiting(lane, member)
    if call('ZREM', P .. 'waiting:' .. lane, member) == 0 then return nil end
    local row = get(lane, member)
    call('ZREM', P .. 'due:' .. lane, member)
    if row.key then call('ZREM', key_at(lane, row.key), member) end
    call('DEL', row_at(lane, member))
    return row
end

local function put_dead(lane, member, row, reason, is_blocking)
    row.state = reason
    local at = write(lane, member, row)
    call('HSET', at, 'ended', int(now))
    call('ZADD', P .. 'dead:' .. lane, seq_of(member), member)
    if is_blocking and row.key then call('ZADD', blocking_at(lane, row.key), seq_of(member), member) end
end

-- The second result is whether it blocked its key.
local function take_dead(lane, member)
    if call('ZREM', P .. 'dead:' .. lane, member) == 0 then return nil end
    local row = get(lane, member)
    local blocked = row.key and call('ZREM', blocking_at(lane, row.key), member) == 1
    call('DEL', row_at(lane, member))
    return row, blocked
end

-- A confirmed delivery: it is kept, with its failed attempts, if delivered messages are kept.
local function keep(lane, member, row)
    local at = lane .. ':' .. member
    call('DEL', P .. 'kept-history:' .. at)
    if args.keep then
        call('HSET', P .. 'kept:' .. at, 'content', row.content, 'attempts', row.attempts)
        call('ZADD', P .. 'delivered', int(now), at)
        local tried = call('LRANGE', history_at(lane, member), 0, -1)
        if #tried > 0 then call('RPUSH', P .. 'kept-history:' .. at, unpack(tried)) end
    end
    call('DEL', history_at(lane, member))
end
