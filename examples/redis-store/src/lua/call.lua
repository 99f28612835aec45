-- The verb that was asked for.
return verbs[ARGV[1]]()
