package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

// command runs one command line to its end.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

const goodFile = `client_ip: {from: headers, trusted_proxies: [10.0.0.0/8]}
rules:
- name: search
  match: {paths: [/search], headers: {X-Plan: free}}
  key: [client_ip]
  limit: 20/1m
`

func TestCheckSaysOKAndWhichHeadersEnvoyMustSend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "good.yaml")
	put(t, file, goodFile)
	code, stdout, stderr := command(t, "check", file)
	want := file + `: ok, 1 rule
# The request headers that the rules read, for Envoy's ext_authz filter:
allowed_headers:
  patterns:
  - exact: content-type
  - exact: x-forwarded-for
  - exact: x-plan
`
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit %d\n%s%s\nwant exit 0\n%s", code, stdout, stderr, want)
	}
}

func TestCheckSaysHowEnvoyTellsTheClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "good.yaml")
	put(t, file, "client_ip: {from: envoy}\nrules: [{name: a, key: [client_ip], limit: 1/1s}]")
	code, stdout, stderr := command(t, "check", file)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, "\n"+envoyClient) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	deployed, err := os.ReadFile("../../deploy/envoy.yaml")
	if _, entry, _ := strings.Cut(envoyClient, "\n- "); err != nil || !strings.Contains(string(deployed), strings.TrimSpace(entry)) {
		t.Errorf("deploy/envoy.yaml does not have %q: %v", entry, err)
	}
}

// D64
func TestCheckSaysBrieflyWhichRulesCostAClusterMoreTrips(t *testing.T) {
	many := slices.Repeat([]string{"r"}, 111)
	var out bytes.Buffer
	printSlots(&out, []config.SlotGroup{
		{By: "client_ip", Rules: []string{"login", "search"}}, {By: "header.x-api-key", Rules: many}, {Rules: many[:11]},
	})
	want := `# A request costs the cluster one trip for the question and one for each slot, when rules of several slots apply to it:
#   a slot by client_ip: login, search
#   a slot by header.x-api-key: r, r, r, r, r, r, r, r, r, r and 101 more
#   each its own slot: r, r, r, r, r, r, r, r, r, r, r
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if printSlots(&out, nil); out.Len() > 0 {
		t.Errorf("without such rules:\n%s", out.String())
	}
}

func TestCheckPrintsEveryProblemOfEveryFileAndExitsWithOne(t *testing.T) {
	dir := t.TempDir()
	bad, good := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "good.yaml")
	put(t, bad, "rules:\n- name: a\n  key: [client_ip]\n  limmit: 5/1m\n  limit: 5/m\n")
	put(t, good, goodFile)
	code, stdout, stderr := command(t, "check", bad, filepath.Join(dir, "none.yaml"), good)
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, want := range []string{bad + `:4:3: rule "a": limmit: `, bad + `:5:10: rule "a": limit: `, "none.yaml: no such file"} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of\n%s\nhas no %q", i+1, stderr, want)
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(stdout, good+": ok") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

func TestWarningsAreProblemsOnlyWhenStrict(t *testing.T) {
	file := filepath.Join(t.TempDir(), "warned.yaml")
	put(t, file, "rules:\n- name: a\n  key: [client_ip]\n  limit: 5/1m\n  algorithm: sliding_counter\n")
	code, stdout, stderr := command(t, "check", file)
	if code != 0 || !strings.Contains(stdout, ": ok, 1 rule") || !strings.Contains(stderr, file+":") || !strings.Contains(stderr, "warning") {
		t.Errorf("exit %d, want 0, ok and the warning\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "check", "--strict", file)
	if code != 1 || stdout != "" || !strings.Contains(stderr, file+":") {
		t.Errorf("strict: exit %d, want 1 and the warning alone\n%s%s", code, stdout, stderr)
	}
}

func TestAnAddressSetOfAFolderCanBeNamed(t *testing.T) {
	dir := t.TempDir()
	sets, file := filepath.Join(dir, "sets"), filepath.Join(dir, "config.yaml")
	must(t, os.Mkdir(sets, 0o700))
	put(t, filepath.Join(sets, "edge.txt"), "# our edge\n203.0.113.0/24\n")
	put(t, file, strings.Replace(goodFile, "10.0.0.0/8", "edge, cloudflare", 1))
	if code, _, stderr := command(t, "check", "--address-sets", sets, file); code != 0 {
		t.Errorf("with the folder: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := command(t, "check", file); code != 1 || !strings.Contains(stderr, "edge") {
		t.Errorf("without the folder: exit %d\n%s", code, stderr)
	}
}

// D86
func TestABadConfigurationEndsTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	put(t, file, anyPorts+"rules:\n- name: a\n  key: [client_ip]\n  limmit: 5/1m\n")
	code, stdout, stderr := command(t, "serve", "--config", file)
	if code != 1 || stdout != "" || !strings.Contains(stderr, file+`:6:3: rule "a": limmit: `) || strings.Contains(stderr, "Usage") {
		t.Errorf("exit %d, want 1 and the problem\n%s%s", code, stdout, stderr)
	}
}

func TestAWrongCommandLineSaysOnceWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "good.yaml")
	put(t, file, anyPorts+goodFile)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serv"}, "serve"},
		{[]string{"serve"}, "config"},
		{[]string{"serve", "--config", file, "--drain", "-1s"}, "--drain"},
		{[]string{"serve", "--config", file, "--drian", "1s"}, "--drian"},
		{[]string{"serve", "--config", file, "--redis-url", "http://localhost"}, "--redis-url"},
		{[]string{"serve", "--config", file + ".none"}, "no such file"},
		{[]string{"serve", "--config", file, "extra"}, "extra"},
		{[]string{"check"}, "at least one FILE"},
	} {
		code, stdout, stderr := command(t, c.args...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "Usage:") {
			t.Errorf("%v: exit %d, want 1 and %q\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

func TestHelpVersionAndCompletionAreThere(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "serve --config config.yaml"},
		{[]string{"--help"}, "Available Commands"},
		{[]string{"serve", "--help"}, "--redis-url"},
		{[]string{"check", "--help"}, "--strict"},
		{[]string{"version"}, "revision"},
		{[]string{"--version"}, "ratelimitd "},
		{[]string{"completion", "bash"}, "bash completion"},
	} {
		if code, stdout, stderr := command(t, c.args...); code != 0 || !strings.Contains(stdout, c.want) || stderr != "" {
			t.Errorf("%v: exit %d, want 0 and %q\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}
