-- Run the requested verb.
return verbs[ARGV[1]]()
