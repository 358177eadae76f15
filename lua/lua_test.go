package lua

import (
	"strings"
	"testing"
)

func TestTheScriptIncludesEveryFile(t *testing.T) {
	if strings.Contains(Driver, "--include") {
		t.Error("a file is not included")
	}
	for _, text := range []string{slidingLog, groupedLog, slidingCounter, tokenBucket, fixedWindow, calendarWindow, ban, several, cause, mulDiv, ringCopy, ringSearch, ringLook} {
		if !strings.Contains(Driver, strings.TrimSpace(strings.Split(text, "--include")[0])) {
			t.Errorf("missing: %s", strings.SplitN(text, "\n", 2)[0])
		}
	}
}
