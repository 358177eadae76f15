package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// limits is a configuration with one limit for every request.
func limits(limit string) string {
	return "rules:\n- name: all\n  key: [client_ip]\n  limit: " + limit + "\n"
}

const (
	reloaded    = "configuration reloaded"
	notReloaded = "configuration not reloaded, the old one stays in force"
	successful  = "ratelimitd_config_last_reload_successful"
)

// D88: each way once, for real, within 2 s of the last write.
func TestAnEditedFileTakesEffectOnceWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	r := start(t, limits("0/1h"))
	for i, replace := range []func(text string){
		r.write,
		func(text string) {
			put(t, r.file+".new", anyPorts+text)
			must(t, os.Rename(r.file+".new", r.file))
		},
		func(text string) {
			whole := anyPorts + text
			put(t, r.file, "")
			for part := 0; part < len(whole); part += len(whole)/4 + 1 {
				time.Sleep(100 * time.Millisecond)
				put(t, r.file, whole[:part])
			}
			put(t, r.file, whole)
		},
		func(text string) {
			must(t, os.Remove(r.file))
			time.Sleep(300 * time.Millisecond)
			r.write(text)
		},
	} {
		passes, limit := i%2 == 0, "0/1h"
		if passes {
			limit = "1000/1h"
		}
		replace(limits(limit))
		eventually(t, 2*time.Second, "the new limit", func() bool { return r.allowed("/") == passes })
		eventually(t, time.Second, "its log line", func() bool { return len(r.said(reloaded)) == i+1 })
	}
	time.Sleep(settleAfter + 2*pollEvery)
	if n, failed := len(r.said(reloaded)), len(r.said(notReloaded)); n != 4 || failed != 0 {
		t.Errorf("%d reloads and %d failed ones after 4 changes", n, failed)
	}
}

// D86
func TestABadFileLeavesTheOldRulesWholeAndSaysSo(t *testing.T) {
	t.Parallel()
	r := start(t, limits("0/1h"))
	_, before := r.get("/config")
	r.write(limits("5/1h") + "- name: broken\n  key: [client_ip]\n  limmit: 5/1h\n  limit: 5/m\n")
	code, text := r.post("/-/reload")
	if code != http.StatusBadRequest || strings.Count(text, "broken") < 2 || !strings.Contains(text, r.file+":") {
		t.Errorf("reload of a bad file: %d %q, want 400 and every problem", code, text)
	}
	if r.allowed("/") {
		t.Error("the limit of the bad file is in force")
	}
	if v := r.metric(successful); v != "0" {
		t.Errorf("%s %s, want 0", successful, v)
	}
	_, after := r.get("/config")
	if hash(before) != hash(after) || !strings.Contains(after, "\n# last reload: error ") {
		t.Errorf("/config after a failed reload:\n%s", after)
	}
	if n := len(r.said(notReloaded)); n != 1 {
		t.Errorf("%d log lines about the failed reload, want 1", n)
	}

	r.write(limits("5/1h"))
	if code, text := r.post("/-/reload"); code != http.StatusOK {
		t.Errorf("reload of the mended file: %d %q", code, text)
	}
	if v := r.metric(successful); v != "1" || !r.allowed("/") {
		t.Errorf("the mended file is not in force (%s %s)", successful, v)
	}
	if _, page := r.get("/config"); !strings.Contains(page, "\n# last reload: ok\n") {
		t.Errorf("/config after a good reload:\n%s", page)
	}
}

// D88
func TestAnEmptyOrVanishedFileLeavesTheOldRules(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"empty":    func(file string) error { return os.Truncate(file, 0) },
		"vanished": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, limits("0/1h"))
			must(t, spoil(r.file))
			eventually(t, 2*time.Second, "a failed reload", func() bool { return r.metric(successful) == "0" })
			if r.allowed("/") {
				t.Error("the old rules are gone")
			}
			r.write(limits("0/1h"))
			eventually(t, 2*time.Second, "the same file back in place", func() bool { return r.metric(successful) == "1" })
		})
	}
}

func TestAReloadTellsHowManyWarningsThereAreAndOnlyTheNewOnesInFull(t *testing.T) {
	t.Parallel()
	coarse := "rules:\n- {name: coarse, match: {paths: [/a]}, key: [client_ip], limit: 5/1m, algorithm: sliding_counter}\n"
	large := "- {name: large, match: {paths: [/b]}, key: [client_ip], limit: 2000/1m}\n"
	r := start(t, coarse)
	for i, step := range []struct {
		text      string
		said, not string
	}{
		{"# a line above\n" + coarse, `"warnings":1,`, "new_warnings"},
		{coarse + large, `"warnings":2,"new_warnings":["` + r.file + `:`, "coarse"},
		{limits("5/1m"), `"rules":1`, "warnings"},
		{coarse, `"warnings":1,"new_warnings":["`, "large"},
	} {
		r.write(step.text)
		r.post("/-/reload")
		if lines := r.said(reloaded); len(lines) != i+1 || !strings.Contains(lines[i], step.said) || strings.Contains(lines[i], step.not) {
			t.Errorf("reload %d: %q, want %s and no %s", i+1, lines, step.said, step.not)
		}
	}
}

// D91
func TestBucketsOutliveReloads(t *testing.T) {
	t.Parallel()
	r := start(t, limits("3/1h"))
	for range 3 {
		if !r.allowed("/") {
			t.Fatal("refused below the limit")
		}
	}
	for i := range 20 {
		r.write(limits("3/1h") + fmt.Sprintf("- name: other\n  key: []\n  limit: %d/1h\n", i+10))
		if code, text := r.post("/-/reload"); code != http.StatusOK {
			t.Fatalf("reload: %d %s", code, text)
		}
		if r.allowed("/") {
			t.Fatalf("reload %d filled the bucket", i+1)
		}
	}
}

// D97
func TestCountersGoOnAfterReloads(t *testing.T) {
	t.Parallel()
	r := start(t, limits("1000/1h"))
	for i := range 3 {
		r.allowed("/")
		want := fmt.Sprint(i + 1)
		if got := r.metric(`ratelimitd_decisions_total{outcome="allowed",rule="all"}`); got != want {
			t.Errorf("after %d requests the counter is %s", i+1, got)
		}
		if code, text := r.post("/-/reload"); code != http.StatusOK {
			t.Fatalf("reload: %d %s", code, text)
		}
	}
}

// D106, D91
func TestTheHashOfTheConfigurationIgnoresComments(t *testing.T) {
	t.Parallel()
	r := start(t, limits("1000/1h"))
	_, first := r.get("/config")
	r.write("# a comment\n" + limits("1000/1h   # another"))
	r.post("/-/reload")
	_, commented := r.get("/config")
	if hash(first) != hash(commented) || hash(first) == "" {
		t.Errorf("a comment changed the hash: %q, then %q", hash(first), hash(commented))
	}
	r.write(limits("1001/1h"))
	r.post("/-/reload")
	_, changed := r.get("/config")
	if hash(changed) == hash(first) {
		t.Error("another limit has the same hash")
	}
	for i, prefix := range []string{"# hash: ", "# loaded: 20", "# last reload: ok"} {
		if lines := strings.Split(changed, "\n"); len(lines) < 4 || !strings.HasPrefix(lines[i], prefix) {
			t.Errorf("line %d of /config does not start with %q:\n%s", i+1, prefix, changed)
		}
	}
}

func hash(config string) string {
	line, _, _ := strings.Cut(config, "\n")
	return strings.TrimPrefix(line, "# hash: ")
}

func TestAChangeThatNeedsARestartIsReportedAndTheRestApplies(t *testing.T) {
	t.Parallel()
	const required = "ratelimitd_config_restart_required"
	r := start(t, limits("0/1h"))
	r.write("store: {memory: {max_keys: 5}}\nlog: {format: console}\n" + limits("9/1h"))
	r.post("/-/reload")
	if v := r.metric(required); v != "1" || !r.allowed("/") {
		t.Errorf("%s %s, want 1, and the new limit in force", required, v)
	}
	if _, page := r.get("/config"); !strings.Contains(page, "\n# in force only after a restart: store, log.format\n") {
		t.Errorf("/config:\n%s", page)
	}
	if lines := r.said(reloaded); len(lines) != 1 || !strings.Contains(lines[0], `"restart_needed":["store","log.format"]`) {
		t.Errorf("log: %q", lines)
	}
	r.write(limits("9/1h"))
	r.post("/-/reload")
	if v := r.metric(required); v != "0" {
		t.Errorf("%s %s once the change is taken back, want 0", required, v)
	}
}

func TestAReloadSetsTheLogLevel(t *testing.T) {
	t.Parallel()
	r := start(t, limits("1/1h"))
	r.write("log: {level: error}\n" + limits("2/1h"))
	r.post("/-/reload")
	if n := len(r.said(reloaded)); n != 0 {
		t.Errorf("%d info lines at level error", n)
	}
	r.write("log: {level: info}\n" + limits("3/1h"))
	r.post("/-/reload")
	if n := len(r.said(reloaded)); n != 1 {
		t.Errorf("%d info lines at level info, want 1", n)
	}
}

func TestSIGHUPReadsTheFileAtOnceAndTheFileIsNotReadAgain(t *testing.T) {
	t.Parallel()
	d := harness.Serve(t, program(t), "", limits("0/1h"))
	d.Configure(strings.Replace(configOf(t, d), "0/1h", "9/1h", 1))
	d.Signal(syscall.SIGHUP)
	eventually(t, 2*time.Second, "a reload by SIGHUP", func() bool { return strings.Contains(d.Log.String(), `"cause":"SIGHUP"`) })
	time.Sleep(settleAfter + 2*pollEvery)
	if n := strings.Count(d.Log.String(), reloaded); n != 1 {
		t.Errorf("%d reloads of one change", n)
	}
}

func configOf(t *testing.T, d *harness.Daemon) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(d.ConfigFile))
	must(t, err)
	return string(text)
}
