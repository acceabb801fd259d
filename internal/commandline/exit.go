package commandline

// Exit codes of every command: done, failed, and used wrongly.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)
