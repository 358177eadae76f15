// Package lua holds the scripts that run on Redis.
package lua

import (
	_ "embed" // for the files below
	"strings"
)

// Driver is the text of the script that decides hits. driver.lua describes its keys, arguments and reply.
var Driver = assemble()

// GiveBack is the text of the script that gives back what hits have spent, as giveback.lua describes.
var GiveBack = strings.ReplaceAll(giveBack, "--include ringcopy.lua", ringCopy)

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

//go:embed calendarwindow.lua
var calendarWindow string

//go:embed ban.lua
var ban string

//go:embed giveback.lua
var giveBack string

// What some of them include where they need it, most of it in rare cases only.

//go:embed several.lua
var several string

//go:embed cause.lua
var cause string

//go:embed muldiv.lua
var mulDiv string

//go:embed ringcopy.lua
var ringCopy string

//go:embed ringsearch.lua
var ringSearch string

//go:embed ringlook.lua
var ringLook string

// assemble puts each file where another one includes it.
func assemble() string {
	rare := strings.NewReplacer(
		"--include muldiv.lua", mulDiv,
		"--include ringcopy.lua", ringCopy,
		"--include ringsearch.lua", ringSearch,
		"--include ringlook.lua", ringLook,
	)
	return strings.NewReplacer(
		"--include slidinglog.lua", rare.Replace(slidingLog),
		"--include groupedlog.lua", rare.Replace(groupedLog),
		"--include slidingcounter.lua", rare.Replace(slidingCounter),
		"--include tokenbucket.lua", rare.Replace(tokenBucket),
		"--include fixedwindow.lua", fixedWindow,
		"--include calendarwindow.lua", calendarWindow,
		"--include ban.lua", ban,
		"--include several.lua", strings.ReplaceAll(several, "--include cause.lua", cause),
	).Replace(driver)
}
