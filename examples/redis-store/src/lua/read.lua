-- Reading rows to deliver.

-- Each lane first gets an equal share; lanes with more rows then share the rest of the limit. Rows are added until
-- they have the requested number of bytes.
function verbs.read_ready()
    local found, more, left = {}, 0, tonumber(args.bytes)
    local share = math.max(math.ceil(args.limit / math.max(#args.lanes, 1)), 1)
    local function read(lane, count)
        if count <= 0 then return false end
        if left <= 0 then return true end
        local floor = '(' .. args.floors[lane + 1]
        local members = call('ZRANGEBYSCORE', P .. 'ready:' .. lane, floor, '+inf', 'LIMIT', 0, count)
        for _, member in ipairs(members) do
            if left <= 0 then return true end
            local content = call('HGET', P .. 'ready-row:' .. lane, member)
            left = left - #(content or '')
            found[#found + 1] = { lane, member, content }
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
    if left <= 0 then more = 1 end
    return { int(now), more, found }
end

function verbs.history() return history() end

function verbs.due()
    local skipped, found = {}, {}
    for _, sink in ipairs(args.skip) do skipped[sink] = true end
    for _, lane in ipairs(args.lanes) do
        local due = call('ZRANGEBYSCORE', P .. 'due:' .. lane, '-inf', int(now), 'WITHSCORES')
        for at = 1, #due, 2 do
            if not skipped[sink_of(due[at])] then found[#found + 1] = { lane, due[at], due[at + 1] } end
        end
    end
    return found
end

-- Returns those of these waiting rows that still exist, until they have the requested number of bytes, and how many
-- rows were examined.
function verbs.fetch()
    local found, left = {}, tonumber(args.bytes)
    for at, place in ipairs(args.places) do
        if left <= 0 then return { int(now), found, at - 1 } end
        local row = call('HMGET', row_at(place[1], place[2]), 'content', 'attempts')
        local is_waiting = call('ZSCORE', P .. 'waiting:' .. place[1], place[2])
        if row[1] and is_waiting then
            left = left - #row[1]
            found[#found + 1] = { place[1], place[2], row[1], row[2] }
        end
    end
    return { int(now), found, #args.places }
end
