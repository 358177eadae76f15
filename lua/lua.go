// Package lua holds the script that decides hits on Redis.
package lua

import (
	_ "embed" // for the files below
	"strings"
)

// Driver is the text of the script. driver.lua describes its keys, arguments and reply.
var Driver = assemble()

//go:embed driver.lua
var driver string

//go:embed slidinglog.lua
var slidingLog string

//go:embed groupedlog.lua
var groupedLog string

//go:embed slidingcounter.lua
var slidingCounter string

//go:embed tokenbucket.lua
var tokenBucket string

//go:embed fixedwindow.lua
var fixedWindow string

//go:embed muldiv.lua
var mulDiv string

// assemble puts each file where another one includes it.
func assemble() string {
	text := strings.NewReplacer(
		"--include slidinglog.lua", slidingLog,
		"--include groupedlog.lua", groupedLog,
		"--include slidingcounter.lua", slidingCounter,
		"--include tokenbucket.lua", tokenBucket,
		"--include fixedwindow.lua", fixedWindow,
	).Replace(driver)
	return strings.ReplaceAll(text, "--include muldiv.lua", mulDiv)
}
