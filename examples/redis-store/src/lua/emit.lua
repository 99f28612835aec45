-- Emitting.

-- An idempotency key is free, belongs to a message, or is reserved by a transaction that is still open. Redis expires
-- keys by its own clock.
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

-- Numbers are assigned here, so they are in commit order, and no message appears behind a reader.
function verbs.commit()
    for _, once in ipairs(args.onces) do
        if not is_reserved(once) then return redis.error_reply('RESERVATIONLOST the reservation of an idempotency key has expired') end
    end
    -- The application's commands come first: if Redis refuses one, no message is written.
    for _, command in ipairs(args.commands) do
        local words = {}
        for _, at in ipairs(command) do words[#words + 1] = ARGV[at + 3] end
        local answer = redis.pcall(unpack(words))
        if type(answer) == 'table' and answer.err then return answer end
    end
    begin_era()
    for _, message in ipairs(args.messages) do
        local content, lane = ARGV[message.content + 3], lane_of(message)
        local member = member_of(call('INCR', P .. 'seq'), message.id, UNROUTED)
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
