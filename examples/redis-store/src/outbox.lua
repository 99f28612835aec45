-- The outbox in Redis. Redis runs one script at a time, from its beginning to its end: each call of this script is a
-- transaction, and nobody sees half of it.
--
-- KEYS[1] what all keys start with; ARGV[1] the verb; ARGV[2] its arguments, as JSON; bytes follow from ARGV[3] on.
--
-- The rooms of a message. Its place is a lane and a member: the number in 19 digits, a colon, the sink ('' before it is
-- routed); so members are in order of the number, and the number is the score of every set.
--   ready:LANE, ready-row:LANE       a sorted set of members, and a hash of their contents
--   waiting:LANE, row:LANE:MEMBER    a sorted set, and a hash a row; due:LANE sorts those that have a time by it
--   dead:LANE, row:LANE:MEMBER       the same for dead letters; blocking:LANE:KEY has those that block their key
--   key:LANE:KEY                     the waiting rows of a key, for everything about its order
--   delivered, kept:LANE:MEMBER      where delivered messages are kept
--   history:LANE:MEMBER              what was tried: three entries a time
local P = KEYS[1] .. ':'
local args = cjson.decode(ARGV[2])
local call = redis.call
local clock = call('TIME')
-- Microseconds since the epoch, exact in a number of Lua for another two centuries.
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local LANES, COMMON, SPECIAL, FOLLOWERS = 80, 64, 8, 64
local UNROUTED = ''

local function int(number) return string.format('%.0f', number) end
local function seq_of(member) return tonumber(string.sub(member, 1, 19)) end
local function leg_of(member) return string.sub(member, 21) end
local function member_of(seq, leg) return string.format('%019.0f', seq) .. ':' .. leg end
local function row_at(lane, member) return P .. 'row:' .. lane .. ':' .. member end
local function history_at(lane, member) return P .. 'history:' .. lane .. ':' .. member end
local function key_at(lane, key) return P .. 'key:' .. lane .. ':' .. key end
local function blocking_at(lane, key) return P .. 'blocking:' .. lane .. ':' .. key end
local function blocks(state) return state == 'held' or state == 'retry' or state == 'down' end

-- Rows -------------------------------------------------------------------------------------------------------------

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

-- Its history stays: whoever takes a row puts it elsewhere, or forgets it.
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

-- Whether it blocked its key is the second answer.
local function take_dead(lane, member)
    if call('ZREM', P .. 'dead:' .. lane, member) == 0 then return nil end
    local row = get(lane, member)
    local blocked = row.key and call('ZREM', blocking_at(lane, row.key), member) == 1
    call('DEL', row_at(lane, member))
    return row, blocked
end

local function keep(lane, member, row)
    call('DEL', history_at(lane, member))
    if args.keep then
        call('HSET', P .. 'kept:' .. lane .. ':' .. member, 'content', row.content, 'attempts', row.attempts)
        call('ZADD', P .. 'delivered', int(now), lane .. ':' .. member)
    end
end

-- The order of a key -----------------------------------------------------------------------------------------------

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
            rows[#rows + 1] = { member = member, leg = leg_of(member), due = row[2] and tonumber(row[2]) or nil }
        end
    end
    return rows
end

-- Whether a leg has to wait for others of its key. A row that is not routed yet may go to any leg.
local function is_held(lane, member, key)
    local leg = leg_of(member)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if seq_of(row.member) ~= seq_of(member) and (row.leg == leg or row.leg == UNROUTED) then return true end
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

-- Those behind a row that has to wait are held again, even if their turn had come.
local function hold_back(lane, key, leg, seq)
    for _, row in ipairs(rows_of_key(lane, key)) do
        if seq_of(row.member) > seq and row.leg == leg and row.due then
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

-- Leases -----------------------------------------------------------------------------------------------------------

local function has_lease(owner)
    local till = call('ZSCORE', P .. 'relays', owner)
    return till and tonumber(till) > now
end

local function lane_at(lane) return P .. 'lane:' .. lane end

local function give_up(lane)
    call('HDEL', lane_at(lane), 'owner', 'suspect_seq', 'suspect_leg', 'suspect_crashes')
    call('HINCRBY', lane_at(lane), 'epoch', 1)
end

local function is_owner(owner, lane) return call('HGET', lane_at(lane), 'owner') == owner end

local verbs = {}

function verbs.enlist()
    call('ZADD', P .. 'relays', int(now + args.lease), args.owner)
    call('HSET', P .. 'relay-names', args.owner, args.name)
end

function verbs.heartbeat()
    local alive = has_lease(args.owner)
    if alive then call('ZADD', P .. 'relays', int(now + args.lease), args.owner) end
    return { alive and 1 or 0, call('ZRANGEBYSCORE', P .. 'relays', '(' .. int(now), '+inf') }
end

function verbs.acquire()
    if not has_lease(args.owner) then return redis.error_reply('LEASELOST the lease of the relay has run out') end
    local grants = {}
    for lane = 0, LANES - 1 do
        if #grants == args.limit then break end
        local at = lane_at(lane)
        if call('HSETNX', at, 'owner', args.owner) == 1 then
            local epoch = call('HINCRBY', at, 'epoch', 1)
            local row = call('HMGET', at, 'crashes', 'suspect_seq', 'suspect_leg', 'suspect_crashes')
            grants[#grants + 1] = { lane, epoch, row[1] or '0', row[2], row[3], row[4] or '0' }
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
    call('ZREM', P .. 'relays', args.owner)
    call('HDEL', P .. 'relay-names', args.owner)
end

function verbs.evict()
    for _, owner in ipairs(call('ZRANGEBYSCORE', P .. 'relays', '-inf', int(now))) do
        call('ZREM', P .. 'relays', owner)
        call('HDEL', P .. 'relay-names', owner)
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
    local row = call('HMGET', at, 'suspect_seq', 'suspect_leg')
    if not args.seq or row[1] ~= args.seq or (row[2] or nil) ~= args.leg then
        call('HDEL', at, 'suspect_seq', 'suspect_leg', 'suspect_crashes')
    end
    if args.seq then call('HSET', at, 'suspect_seq', args.seq) end
    if args.leg then call('HSET', at, 'suspect_leg', args.leg) end
end

-- Emitting ---------------------------------------------------------------------------------------------------------

-- An idempotency key is free, held by the id of a message, or taken by a transaction that is still open. Redis forgets
-- keys by itself when their time is over, by its own clock.
function verbs.reserve()
    local held = call('GET', P .. 'once:' .. args.once)
    if held then return held end
    local taken = call('GET', P .. 'taken:' .. args.once)
    if not taken then
        call('SET', P .. 'taken:' .. args.once, args.tx .. args.id, 'PX', args.patience)
        return UNROUTED
    end
    if string.sub(taken, 1, 36) == args.tx then return string.sub(taken, 37) end
    return 'wait'
end

local function is_reserved(once) return string.sub(call('GET', P .. 'taken:' .. once) or '', 1, 36) == args.tx end

function verbs.unreserve()
    for _, once in ipairs(args.onces) do
        if is_reserved(once) then call('DEL', P .. 'taken:' .. once) end
    end
end

local function lane_of(message)
    local hash = tonumber(string.sub(redis.sha1hex(message.key or message.id), 1, 8), 16)
    if message.key or message.priority == 0 then return hash % COMMON end
    return COMMON + hash % SPECIAL + (message.priority < 0 and SPECIAL or 0)
end

-- Numbers are given here, so they are in the order of the commits, and nothing ever appears behind a reader.
function verbs.commit()
    for _, once in ipairs(args.onces) do
        if not is_reserved(once) then return redis.error_reply('RESERVATIONLOST an idempotency key is not reserved any more') end
    end
    -- What the application does comes first: if Redis refuses it, no message leaves.
    for _, command in ipairs(args.commands) do
        local words = {}
        for _, at in ipairs(command) do words[#words + 1] = ARGV[at + 3] end
        local answer = redis.pcall(unpack(words))
        if type(answer) == 'table' and answer.err then return answer end
    end
    for _, message in ipairs(args.messages) do
        local content, lane = ARGV[message.content + 3], lane_of(message)
        local member = member_of(call('INCR', P .. 'seq'), UNROUTED)
        if message.due then
            put_waiting(lane, member, {
                content = content, key = message.key, state = 'scheduled', attempts = 0, due = message.due,
            })
        else
            call('HSET', P .. 'ready-row:' .. lane, member, content)
            call('ZADD', P .. 'ready:' .. lane, seq_of(member), member)
        end
        if message.once then
            call('DEL', P .. 'taken:' .. message.once)
            call('SET', P .. 'once:' .. message.once, message.id, 'PX', args.window)
        end
    end
end

-- Reading ----------------------------------------------------------------------------------------------------------

-- A share for each lane first, then what is left of the limit for those that have more.
function verbs.read_ready()
    local found, more = {}, 0
    local share = math.max(math.ceil(args.limit / math.max(#args.lanes, 1)), 1)
    local function read(lane, count)
        if count <= 0 then return false end
        local floor = '(' .. args.floors[lane + 1]
        local members = call('ZRANGEBYSCORE', P .. 'ready:' .. lane, floor, '+inf', 'LIMIT', 0, count)
        for _, member in ipairs(members) do
            found[#found + 1] = { lane, member, call('HGET', P .. 'ready-row:' .. lane, member) }
            args.floors[lane + 1] = int(seq_of(member))
        end
        return #members == count
    end
    local full = {}
    for _, lane in ipairs(args.lanes) do
        if read(lane, share) then full[#full + 1] = lane end
    end
    for _, lane in ipairs(full) do
        if args.limit <= #found or read(lane, args.limit - #found) then more = 1 end
    end
    return { int(now), more, found }
end

function verbs.due()
    local skipped, found = {}, {}
    for _, leg in ipairs(args.skip) do skipped[leg] = true end
    for _, lane in ipairs(args.lanes) do
        local due = call('ZRANGEBYSCORE', P .. 'due:' .. lane, '-inf', int(now), 'WITHSCORES')
        for at = 1, #due, 2 do
            if not skipped[leg_of(due[at])] then found[#found + 1] = { lane, due[at], due[at + 1] } end
        end
    end
    return found
end

-- Of these waiting rows, those that are still there.
function verbs.fetch()
    local found = {}
    for _, place in ipairs(args.places) do
        local row = call('HMGET', row_at(place[1], place[2]), 'content', 'attempts')
        local is_waiting = call('ZSCORE', P .. 'waiting:' .. place[1], place[2])
        if row[1] and is_waiting then found[#found + 1] = { place[1], place[2], row[1], row[2] } end
    end
    return { int(now), found }
end

-- Settling ---------------------------------------------------------------------------------------------------------

function verbs.settle()
    local is_lost, lost = {}, {}
    local alive = has_lease(args.owner)
    for _, settlement in ipairs(args.settlements) do
        local lane = settlement.lane
        local row = call('HMGET', lane_at(lane), 'owner', 'epoch')
        if not is_lost[lane] and not (alive and row[1] == args.owner and row[2] == settlement.epoch) then
            is_lost[lane] = true
            lost[#lost + 1] = lane
        end
    end
    local holds, touched, woke = {}, {}, 0

    local function charge(lane, member, row, verdict)
        if verdict.charged or row.error ~= verdict.error then
            local history = history_at(lane, member)
            call('RPUSH', history, int(now), leg_of(member), verdict.error)
            call('LTRIM', history, -60, -1)
        end
        row.attempts = row.attempts + (verdict.charged and 1 or 0)
        row.error = verdict.error
    end

    local function settle_leg(lane, member, row, verdict)
        if verdict.is == 'delivered' then
            keep(lane, member, row)
        elseif verdict.is == 'retry' then
            charge(lane, member, row, verdict)
            row.state, row.due = verdict.state, now + verdict.delay
            put_waiting(lane, member, row)
        elseif verdict.is == 'hold' then
            holds[#holds + 1] = { lane = lane, member = member, row = row }
        else
            charge(lane, member, row, verdict)
            put_dead(lane, member, row, verdict.reason, verdict.blocks)
        end
    end

    -- A row that was not routed yet becomes one a leg; those that are not listed are delivered.
    local function split(settlement, member, row)
        local lane, seq = settlement.lane, seq_of(member)
        local tried = call('LRANGE', history_at(lane, member), 0, -1)
        call('DEL', history_at(lane, member))
        if #settlement.legs == 0 then keep(lane, member, row) end
        for _, leg in ipairs(settlement.legs) do
            local copy = {}
            for name, value in pairs(row) do copy[name] = value end
            local of_leg = member_of(seq, leg.leg)
            if #tried > 0 then call('RPUSH', history_at(lane, of_leg), unpack(tried)) end
            settle_leg(lane, of_leg, copy, leg.verdict)
        end
    end

    -- A row of a key left the waiting room, or stays in it: those behind it may go, or have to stay.
    local function tend_followers(settlement, member)
        local lane, leg, key = settlement.lane, leg_of(member), settlement.key
        touched[#touched + 1] = { lane, key, leg }
        local passes = true
        for _, settled in ipairs(settlement.legs) do
            local verdict = settled.verdict
            local has_to_wait = (verdict.is == 'retry' and blocks(verdict.state)) or (verdict.is == 'dead' and verdict.blocks)
            if has_to_wait then hold_back(lane, key, settled.leg, seq_of(member)) end
            passes = passes and not has_to_wait and verdict.is ~= 'hold'
        end
        -- What was not routed held every leg; those of its own legs that have to wait are looked at one by one.
        if (passes or leg == UNROUTED) and follow_on(lane, key, leg) > 0 then woke = 1 end
    end

    for _, settlement in ipairs(args.settlements) do
        local lane, member = settlement.lane, settlement.member
        if not is_lost[lane] then
            if settlement.ready then
                local content = call('HGET', P .. 'ready-row:' .. lane, member)
                if content then
                    call('HDEL', P .. 'ready-row:' .. lane, member)
                    call('ZREM', P .. 'ready:' .. lane, member)
                    split(settlement, member, { content = content, key = settlement.key, attempts = 0 })
                end
            else
                local row = take_waiting(lane, member)
                if row then
                    row.due = nil
                    if leg_of(member) == UNROUTED then
                        split(settlement, member, row)
                    elseif #settlement.legs > 0 then
                        settle_leg(lane, member, row, settlement.legs[1].verdict)
                    else
                        keep(lane, member, row)
                    end
                    if settlement.key then tend_followers(settlement, member) end
                end
            end
        end
    end

    -- Once everything that could hold them is in its place, in the order of the key, so that none is held by one behind.
    table.sort(holds, function(a, b) return a.member < b.member end)
    for _, hold in ipairs(holds) do
        local held = hold.row.key and is_held(hold.lane, hold.member, hold.row.key)
        hold.row.state, hold.row.due = 'held', (not held) and now or nil
        if not held then woke = 1 end
        put_waiting(hold.lane, hold.member, hold.row)
    end
    local freed, seen = {}, {}
    for _, at in ipairs(touched) do
        local name = cjson.encode(at)
        if not seen[name] and not key_left(at[1], at[2], at[3]) then freed[#freed + 1] = at end
        seen[name] = true
    end
    return { lost, freed, woke }
end

function verbs.blocked_keys()
    local found, seen = {}, {}
    local function add(lane, member, key)
        local name = lane .. ':' .. leg_of(member) .. ':' .. key
        if not seen[name] then
            seen[name] = true
            found[#found + 1] = { lane, key, leg_of(member) }
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
                if row[1] and row[2] == 'held' and not row[3] then
                    groups[cjson.encode({ row[1], leg_of(member) })] = { row[1], leg_of(member) }
                end
            end
        end
        for _, group in pairs(groups) do
            local has_turn = false
            for _, row in ipairs(rows_of_key(lane, group[1])) do
                has_turn = has_turn or (row.leg == group[2] and row.due ~= nil)
            end
            if not has_turn then let_go = let_go + follow_on_leg(lane, group[1], group[2]) end
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

-- The time, the time of what fell due first, and of each lane its first ready message and whether it is held.
function verbs.vitals()
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

-- Operating --------------------------------------------------------------------------------------------------------

-- Every row: room, lane, member, content, key, state, due, attempts, error, ended, whether it blocks, and its history.
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
        rows[#rows + 1] = {
            'delivered', tonumber(lane), member, row[1], false, false, row[2], false, delivered[at + 1], 0, {},
        }
    end
    return { int(now), rows }
end

local function audit(affected)
    call('LPUSH', P .. 'audit', cjson.encode({ at = int(now), what = args.audit, affected = affected }))
    return affected
end

function verbs.retry_dead()
    local affected = 0
    for _, place in ipairs(args.places) do
        local lane, member = place[1], place[2]
        if not call('ZSCORE', P .. 'waiting:' .. lane, member) then
            local row = take_dead(lane, member)
            if row then
                row.state, row.due, row.attempts = 'retry', now, 0
                put_waiting(lane, member, row)
                affected = affected + 1
            end
        end
    end
    return audit(affected)
end

function verbs.discard_dead()
    local affected, freed = 0, {}
    for _, place in ipairs(args.places) do
        local row, blocked = take_dead(place[1], place[2])
        if row then
            call('DEL', history_at(place[1], place[2]))
            affected = affected + 1
            if blocked then freed[#freed + 1] = { place[1], row.key, leg_of(place[2]) } end
        end
    end
    for _, at in ipairs(freed) do follow_on(at[1], at[2], at[3]) end
    return audit(affected)
end

function verbs.release_key()
    local freed = {}
    for lane = 0, LANES - 1 do
        for _, member in ipairs(call('ZRANGE', blocking_at(lane, args.key), 0, -1)) do
            if not args.leg or leg_of(member) == args.leg then
                call('ZREM', blocking_at(lane, args.key), member)
                freed[#freed + 1] = { lane, leg_of(member) }
            end
        end
    end
    for _, at in ipairs(freed) do follow_on(at[1], args.key, at[2]) end
    return audit(#freed)
end

function verbs.hasten()
    local affected = 0
    for _, place in ipairs(args.places) do
        local lane, member = place[1], place[2]
        local row = call('ZSCORE', P .. 'waiting:' .. lane, member) and get(lane, member)
        local late = row and row.due and row.due > now
        local tried = row and args.reset and (row.attempts > 0 or row.error)
        if row and row.state ~= 'held' and (late or tried) then
            if late then set_due(lane, member, now) end
            if args.reset then
                call('HSET', row_at(lane, member), 'attempts', 0)
                call('HDEL', row_at(lane, member), 'error')
            end
            affected = affected + 1
        end
    end
    return audit(affected)
end

function verbs.pause()
    local pause = cjson.encode({ since = int(now), by = args.by })
    return audit(call('HSETNX', P .. 'paused', args.what, pause))
end

function verbs.resume()
    local ended = call('HDEL', P .. 'paused', args.what)
    for _, place in ipairs(ended == 1 and args.places or {}) do
        local row = call('ZSCORE', P .. 'waiting:' .. place[1], place[2]) and get(place[1], place[2])
        if row and row.due and row.due > now then set_due(place[1], place[2], now) end
    end
    return audit(ended)
end

function verbs.clean_up()
    local deleted, remaining = 0, 0
    local function goes()
        if deleted == args.limit then
            remaining = remaining + 1
            return false
        end
        deleted = deleted + 1
        return true
    end
    if args.delivered then
        for _, at in ipairs(call('ZRANGEBYSCORE', P .. 'delivered', '-inf', int(now - args.delivered))) do
            if goes() then
                call('ZREM', P .. 'delivered', at)
                call('DEL', P .. 'kept:' .. at)
            end
        end
    end
    for lane = 0, args.dead and LANES - 1 or -1 do
        for _, member in ipairs(call('ZRANGE', P .. 'dead:' .. lane, 0, -1)) do
            local row = call('HMGET', row_at(lane, member), 'ended', 'key')
            local is_blocking = row[2] and call('ZSCORE', blocking_at(lane, row[2]), member)
            if not is_blocking and tonumber(row[1]) <= now - args.dead and goes() then
                take_dead(lane, member)
                call('DEL', history_at(lane, member))
            end
        end
    end
    if args.audit then audit(deleted) end
    return { deleted, remaining }
end

function verbs.lane_views()
    local views = {}
    for lane = 0, LANES - 1 do
        local row = call('HMGET', lane_at(lane), 'epoch', 'owner', 'crashes')
        local name = row[2] and call('HGET', P .. 'relay-names', row[2])
        local till = row[2] and call('ZSCORE', P .. 'relays', row[2])
        views[#views + 1] = { row[1] or '0', row[2], name, till, row[3] or '0', call('ZCARD', P .. 'ready:' .. lane) }
    end
    return views
end

function verbs.pauses() return call('HGETALL', P .. 'paused') end

function verbs.audits() return call('LRANGE', P .. 'audit', 0, args.limit - 1) end

function verbs.now() return int(now) end

return verbs[ARGV[1]]()
