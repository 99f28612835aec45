-- The order of a key.

local function has_blocking_dead(lane, key, sink, or_unrouted)
    for _, member in ipairs(call('ZRANGE', blocking_at(lane, key), 0, -1)) do
        local other = sink_of(member)
        if other == sink or (or_unrouted and other == UNROUTED) then return true end
    end
    return false
end

-- The waiting rows of a key that block it, in order, each with its member.
local function rows_of_key(lane, key)
    local rows = {}
    for _, member in ipairs(call('ZRANGE', key_at(lane, key), 0, -1)) do
        local row = call('HMGET', row_at(lane, member), 'state', 'due')
        if blocks(row[1]) then
            rows[#rows + 1] = {
                member = member, sink = sink_of(member), state = row[1], due = row[2] and tonumber(row[2]) or nil,
            }
        end
    end
    return rows
end

-- Whether a delivery must wait for others of its key. A row that is not routed yet may go to any sink.
local function is_blocked(lane, member, key)
    local sink, seq = sink_of(member), seq_of(member)
    for _, row in ipairs(rows_of_key(lane, key)) do
        local other = seq_of(row.member)
        -- A later row that is blocked waits for this one.
        local is_before = other < seq or (other > seq and row.state ~= 'blocked')
        if is_before and (row.sink == sink or row.sink == UNROUTED) then return true end
    end
    return has_blocking_dead(lane, key, sink, true)
end

-- Makes the next rows of a key due; returns how many.
local function follow_on_sink(lane, key, sink)
    if has_blocking_dead(lane, key, sink, true) then return 0 end
    local let_go = 0
    for _, row in ipairs(rows_of_key(lane, key)) do
        if row.sink == sink or row.sink == UNROUTED then
            -- This row is next and not due yet; or its sink is not known yet, so no row may overtake it.
            if (row.due and row.due > now) or row.sink ~= sink or (not row.due and let_go == FOLLOWERS) then break end
            if not row.due then
                set_due(lane, row.member, now)
                let_go = let_go + 1
            end
        end
    end
    return let_go
end

-- A row that was not routed may have blocked rows of any sink.
local function follow_on(lane, key, sink)
    if sink ~= UNROUTED then return follow_on_sink(lane, key, sink) end
    local seen, let_go = {}, 0
    for _, member in ipairs(call('ZRANGE', key_at(lane, key), 0, -1)) do
        local other = sink_of(member)
        if not seen[other] then
            seen[other] = true
            let_go = let_go + follow_on_sink(lane, key, other)
        end
    end
    return let_go
end

-- Rows behind a row that must wait are blocked again, even if they were due. An unrouted row blocks all sinks.
local function hold_back(lane, key, sink, seq)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if seq_of(row.member) > seq and (row.sink == sink or sink == UNROUTED) and row.due then
            call('HSET', row_at(lane, row.member), 'state', 'blocked')
            set_due(lane, row.member, nil)
        end
    end
end

local function key_left(lane, key, sink)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if row.sink == sink then return true end
    end
    return has_blocking_dead(lane, key, sink, false)
end
