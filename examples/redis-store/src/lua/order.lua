-- The order of a key.

local function has_blocking_dead(lane, key, leg, or_unrouted)
    for _, member in ipairs(call('ZRANGE', blocking_at(lane, key), 0, -1)) do
        local other = leg_of(member)
        if other == leg or (or_unrouted and other == UNROUTED) then return true end
    end
    return false
end

-- The waiting rows of a key that block, in order; each with its member.
local function rows_of_key(lane, key)
    local rows = {}
    for _, member in ipairs(call('ZRANGE', key_at(lane, key), 0, -1)) do
        local row = call('HMGET', row_at(lane, member), 'state', 'due')
        if blocks(row[1]) then
            rows[#rows + 1] = {
                member = member, leg = leg_of(member), state = row[1], due = row[2] and tonumber(row[2]) or nil,
            }
        end
    end
    return rows
end

-- Whether a leg has to wait for others of its key. A row that is not routed yet may go to any leg.
local function is_held(lane, member, key)
    local leg, seq = leg_of(member), seq_of(member)
    for _, row in ipairs(rows_of_key(lane, key)) do
        local other = seq_of(row.member)
        -- One that is held behind it waits for this one.
        local is_before = other < seq or (other > seq and row.state ~= 'held')
        if is_before and (row.leg == leg or row.leg == UNROUTED) then return true end
    end
    return has_blocking_dead(lane, key, leg, true)
end

-- Lets the next rows of a key go; returns how many.
local function follow_on_leg(lane, key, leg)
    if has_blocking_dead(lane, key, leg, true) then return 0 end
    local let_go = 0
    for _, row in ipairs(rows_of_key(lane, key)) do
        if row.leg == leg or row.leg == UNROUTED then
            -- Its turn comes first and has not come yet; or nobody knows where it will go, so nothing may pass it.
            if (row.due and row.due > now) or row.leg ~= leg or (not row.due and let_go == FOLLOWERS) then break end
            if not row.due then
                set_due(lane, row.member, now)
                let_go = let_go + 1
            end
        end
    end
    return let_go
end

-- When a row left that was not routed, it may have held rows of any leg.
local function follow_on(lane, key, leg)
    if leg ~= UNROUTED then return follow_on_leg(lane, key, leg) end
    local seen, let_go = {}, 0
    for _, member in ipairs(call('ZRANGE', key_at(lane, key), 0, -1)) do
        local other = leg_of(member)
        if not seen[other] then
            seen[other] = true
            let_go = let_go + follow_on_leg(lane, key, other)
        end
    end
    return let_go
end

-- Those behind a row that has to wait are held again, even if their turn had come. One that was not routed yet holds up every
-- leg.
local function hold_back(lane, key, leg, seq)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if seq_of(row.member) > seq and (row.leg == leg or leg == UNROUTED) and row.due then
            call('HSET', row_at(lane, row.member), 'state', 'held')
            set_due(lane, row.member, nil)
        end
    end
end

local function key_left(lane, key, leg)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if row.leg == leg then return true end
    end
    return has_blocking_dead(lane, key, leg, false)
end
