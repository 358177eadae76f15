package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A header that Envoy does not send is absent for the rules: whoever starts from the examples must not meet that.
func TestTheExampleEnvoySendsWhatTheExampleRulesRead(t *testing.T) {
	sends := headerNames(deployedHeaders(t))
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(readme), "\n```yaml\n")
	rules, _, _ = strings.Cut(rules, "\n```\n")
	byProxies := filepath.Join(t.TempDir(), "proxies.yaml")
	inReadme := filepath.Join(t.TempDir(), "readme.yaml")
	for file, text := range map[string]string{
		inReadme:  rules,
		byProxies: "client_ip: {from: headers, trusted_proxies: [10.0.0.0/8]}\nrules: [{name: a, key: [client_ip], limit: 1/1s}]",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"../../config.example.yaml", inReadme, byProxies} {
		out, err := exec.Command(ratelimitd, "check", file).Output()
		if err != nil {
			t.Fatalf("check %s: %v", file, err)
		}
		reads := headerNames(string(out))
		if len(reads) == 0 {
			t.Errorf("%s: check prints no headers:\n%s", file, out)
		}
		for _, name := range reads {
			if !slices.Contains(sends, name) {
				t.Errorf("%s reads %s, which deploy/envoy.yaml does not send", file, name)
			}
		}
	}
}
