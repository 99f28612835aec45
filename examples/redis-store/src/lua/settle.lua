-- Settling, fenced by owner and epoch.

-- Whether a row with this verdict blocks later rows of its key.
local function has_to_wait(verdict)
    return verdict.is == 'blocked' or (verdict.is == 'retry' and blocks(verdict.state)) or (verdict.is == 'dead' and verdict.blocks)
end

function verbs.settle()
    local is_lost, lost = {}, {}
    local alive = has_lease(args.owner)
    for _, lane in ipairs(args.lanes) do
        local row = call('HMGET', lane_at(lane[1]), 'owner', 'epoch')
        if not (alive and row[1] == args.owner and row[2] == lane[2]) then
            is_lost[lane[1]] = true
            lost[#lost + 1] = lane[1]
        end
    end
    -- Blocked rows; keys with a row that must wait; and keys that a row has left. Each key is in a list once.
    local holds, behind, gone, seen, woke = {}, {}, {}, {}, 0

    local function note(list, name, lane, key, sink, seq)
        local at = cjson.encode({ name, lane, key, sink })
        if not seen[at] then
            seen[at] = { lane = lane, key = key, sink = sink, seq = seq }
            list[#list + 1] = seen[at]
        end
        seen[at].seq = math.min(seen[at].seq, seq)
    end

    -- An attempt is counted while the row has as many as it had when it was read: one that has more was settled before, and the
    -- answer was lost.
    local function charge(lane, member, row, verdict, attempts)
        local charged = verdict.charged and row.attempts == attempts
        if charged or row.error ~= verdict.error then
            local history = history_at(lane, member)
            call('RPUSH', history, int(now), sink_of(member), verdict.error)
            call('LTRIM', history, -60, -1)
        end
        row.attempts = row.attempts + (charged and 1 or 0)
        row.error = verdict.error
    end

    local function settle_delivery(lane, member, row, verdict, attempts)
        if verdict.is == 'delivered' then
            keep(lane, member, row)
        elseif verdict.is == 'retry' then
            charge(lane, member, row, verdict, attempts)
            -- Who ended the pause has not seen this one wait.
            local ended = verdict.pause and call('HEXISTS', P .. 'paused', verdict.pause) == 0
            local delay = ended and 0 or verdict.delay
            row.state, row.due = verdict.state, now + delay
            if delay == 0 then woke = 1 end
            put_waiting(lane, member, row)
        elseif verdict.is == 'blocked' then
            row.state, row.due = 'blocked', nil
            put_waiting(lane, member, row)
            holds[#holds + 1] = { lane = lane, member = member, key = row.key }
        else
            charge(lane, member, row, verdict, row.attempts)
            put_dead(lane, member, row, verdict.reason, verdict.blocks)
        end
    end

    -- A row that was not routed yet becomes one row per delivery. Sinks that are not listed have confirmed it.
    local function split(settlement, row)
        local lane, member = settlement.lane, settlement.member
        local tried = call('LRANGE', history_at(lane, member), 0, -1)
        call('DEL', history_at(lane, member))
        if #settlement.deliveries == 0 then keep(lane, member, row) end
        for _, delivery in ipairs(settlement.deliveries) do
            local copy = {}
            for name, value in pairs(row) do copy[name] = value end
            local of_sink = with_sink(member, delivery.sink)
            if #tried > 0 then call('RPUSH', history_at(lane, of_sink), unpack(tried)) end
            settle_delivery(lane, of_sink, copy, delivery.verdict, settlement.attempts)
        end
    end

    -- A row of a key left the waiting table, or stays in it: later rows become due, or stay blocked.
    local function note_key(settlement)
        local lane, key, member = settlement.lane, settlement.key, settlement.member
        local sink, seq, passes = sink_of(member), seq_of(member), true
        for _, settled in ipairs(settlement.deliveries) do
            local waits = has_to_wait(settled.verdict)
            local of_sink = sink == UNROUTED and settled.sink or sink
            if waits then note(behind, 'behind', lane, key, of_sink, seq) end
            -- A row that was not routed blocked all sinks, unless it stays unrouted.
            local stays = settled.sink == UNROUTED and (settled.verdict.is == 'retry' or settled.verdict.is == 'blocked')
            if sink == UNROUTED then waits = stays end
            passes = passes and not waits
        end
        if passes then note(gone, 'gone', lane, key, sink, seq) end
    end

    for _, settlement in ipairs(args.settlements) do
        local lane, member = settlement.lane, settlement.member
        if not is_lost[lane] then
            if settlement.ready then
                local content = call('HGET', P .. 'ready-row:' .. lane, member)
                if content then
                    call('HDEL', P .. 'ready-row:' .. lane, member)
                    call('ZREM', P .. 'ready:' .. lane, member)
                    split(settlement, { content = content, key = settlement.key, attempts = 0 })
                end
            else
                local row = take_waiting(lane, member)
                if row then
                    row.due = nil
                    if sink_of(member) == UNROUTED then
                        split(settlement, row)
                    elseif #settlement.deliveries > 0 then
                        settle_delivery(lane, member, row, settlement.deliveries[1].verdict, settlement.attempts)
                    else
                        keep(lane, member, row)
                    end
                    if settlement.key then note_key(settlement) end
                end
            end
        end
    end

    -- Keys come last, when all rows are in their tables.
    for _, at in ipairs(behind) do hold_back(at.lane, at.key, at.sink, at.seq) end
    for _, at in ipairs(gone) do
        if follow_on(at.lane, at.key, at.sink) > 0 then woke = 1 end
    end
    table.sort(holds, function(a, b) return a.member < b.member end)
    for _, hold in ipairs(holds) do
        if not (hold.key and is_blocked(hold.lane, hold.member, hold.key)) then
            set_due(hold.lane, hold.member, now)
            woke = 1
        end
    end
    local freed = {}
    for _, at in ipairs(gone) do
        if not key_left(at.lane, at.key, at.sink) then freed[#freed + 1] = { at.lane, at.key, at.sink } end
    end
    return { lost, freed, woke }
end

function verbs.blocked_keys()
    local found, seen = {}, {}
    local function add(lane, member, key)
        local name = lane .. ':' .. sink_of(member) .. ':' .. key
        if not seen[name] then
            seen[name] = true
            found[#found + 1] = { lane, key, sink_of(member) }
        end
    end
    for _, lane in ipairs(args.lanes) do
        for _, member in ipairs(call('ZRANGE', P .. 'waiting:' .. lane, 0, -1)) do
            local row = call('HMGET', row_at(lane, member), 'key', 'state')
            if row[1] and blocks(row[2]) then add(lane, member, row[1]) end
        end
        for _, member in ipairs(call('ZRANGE', P .. 'dead:' .. lane, 0, -1)) do
            local key = call('HGET', row_at(lane, member), 'key')
            if key and call('ZSCORE', blocking_at(lane, key), member) then add(lane, member, key) end
        end
    end
    return found
end

function verbs.release_orphans()
    local let_go = 0
    for _, lane in ipairs(args.lanes) do
        local groups = {}
        if is_owner(args.owner, lane) then
            for _, member in ipairs(call('ZRANGE', P .. 'waiting:' .. lane, 0, -1)) do
                local row = call('HMGET', row_at(lane, member), 'key', 'state', 'due')
                if row[1] and row[2] == 'blocked' and not row[3] then
                    groups[cjson.encode({ row[1], sink_of(member) })] = { row[1], sink_of(member) }
                end
            end
        end
        for _, group in pairs(groups) do
            local has_turn = false
            for _, row in ipairs(rows_of_key(lane, group[1])) do
                has_turn = has_turn or (row.sink == group[2] and row.due ~= nil)
            end
            if not has_turn then let_go = let_go + follow_on_sink(lane, group[1], group[2]) end
        end
    end
    return let_go
end

function verbs.backlog()
    local ready, due, waiting, dead = 0, 0, 0, 0
    for lane = 0, LANES - 1 do
        ready = ready + call('ZCARD', P .. 'ready:' .. lane)
        waiting = waiting + call('ZCARD', P .. 'waiting:' .. lane)
        due = due + call('ZCOUNT', P .. 'due:' .. lane, '-inf', int(now))
        dead = dead + call('ZCARD', P .. 'dead:' .. lane)
    end
    return { ready, due, waiting - due, dead }
end

-- The time, the earliest due time, and for each lane its first ready message and whether a live relay owns the lane.
function verbs.health()
    local heads, oldest_due = {}, false
    for lane = 0, LANES - 1 do
        local first = call('ZRANGE', P .. 'ready:' .. lane, 0, 0)[1]
        if first then
            local owner = call('HGET', lane_at(lane), 'owner')
            local held = (owner and has_lease(owner)) and 1 or 0
            heads[#heads + 1] = { lane, first, call('HGET', P .. 'ready-row:' .. lane, first), held }
        end
        local due = call('ZRANGE', P .. 'due:' .. lane, 0, 0, 'WITHSCORES')[2]
        if due and tonumber(due) <= now and (not oldest_due or tonumber(due) < tonumber(oldest_due)) then
            oldest_due = due
        end
    end
    return { int(now), oldest_due, heads }
end
