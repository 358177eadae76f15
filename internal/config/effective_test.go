package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const withPassword = "store: {redis: {url: \"redis://user:s3cret@cache:6379/1\"}}\n"

// D106
func TestTheHashChangesWithMeaningAndNotWithLayout(t *testing.T) {
	base := parse(t, "rules:\n- name: a\n  key: [client_ip]\n  limit: 10/1m\n").Hash()
	same := []string{
		"# comment\nrules: [{limit: 10/60s, key: [client_ip], name: \"a\"}]\n",
		"rules:\n- name: a # comment\n  key:\n  - client_ip\n  limit: 10/1m\n  algorithm: sliding_log\n  cost: 1\nadmin: 127.0.0.1:9002\n",
	}
	other := []string{
		"rules:\n- name: b\n  key: [client_ip]\n  limit: 10/1m\n",
		"rules:\n- name: a\n  key: [client_ip]\n  limit: 11/1m\n",
		"rules:\n- name: a\n  key: [client_ip]\n  limit: 10/1m\n  mode: shadow\n",
		"rules:\n- name: a\n  key: [client_ip]\n  limit: 10/1m\n  cost: {from: header.x-cost}\n",
		"rules:\n- name: a\n  key: [client_ip]\n  limit: 10/1m\n  overrides: [{match: {}, cost: 2}]\n",
		"admin: \"\"\nrules:\n- name: a\n  key: [client_ip]\n  limit: 10/1m\n",
	}
	for _, text := range same {
		if parse(t, text).Hash() != base {
			t.Errorf("another hash for\n%s", text)
		}
	}
	for _, text := range other {
		if parse(t, text).Hash() == base {
			t.Errorf("the same hash for\n%s", text)
		}
	}
}

func TestPasswordsAreMaskedButCountForTheHash(t *testing.T) {
	c := parse(t, withPassword)
	text := string(c.Effective())
	if strings.Contains(text, "s3cret") || !strings.Contains(text, "redis://user:xxxxx@cache:6379/1") {
		t.Errorf("the effective form is\n%s", text)
	}
	if parse(t, strings.Replace(withPassword, "s3cret", "other", 1)).Hash() == c.Hash() {
		t.Error("another password has the same hash")
	}
	if c.Store.Redis.URL != "redis://user:s3cret@cache:6379/1" {
		t.Errorf("the URL itself is %q", c.Store.Redis.URL)
	}
}

// The values of such headers let in whoever knows them.
func TestHeaderValuesThatMayBeSecretAreMaskedButCountForTheHash(t *testing.T) {
	const text = "rules: [{name: a, action: allow, match: {headers: {%s: [s3cret, other]}}}]"
	tests := map[string]bool{
		"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "X-Api-Key": true, "x-auth": true, "X-CSRF-Token": true,
		"x-client-secret": true, "x-password": true, "x-plan": false, "user-agent": false,
	}
	for header, secret := range tests {
		c := parse(t, fmt.Sprintf(text, header))
		want := "      - s3cret\n      - other\n"
		if secret {
			want = "      - xxxxx\n      - xxxxx\n"
		}
		if got := string(c.Effective()); !strings.Contains(got, strings.ToLower(header)+":\n"+want) {
			t.Errorf("%s: the effective form is\n%s", header, got)
		}
		if parse(t, strings.Replace(fmt.Sprintf(text, header), "s3cret", "changed", 1)).Hash() == c.Hash() {
			t.Errorf("%s: another value has the same hash", header)
		}
		if c.Rules[0].Match.Headers[0].Values[0] != "s3cret" {
			t.Errorf("%s: the rule itself has lost its value", header)
		}
	}
	if text := string(parse(t, "rules: [{name: a, action: deny, match: {headers: {cookie: absent}}}]").Effective()); !strings.Contains(text, "cookie: absent") {
		t.Errorf("what is no value is masked:\n%s", text)
	}
}

func TestSecretsOfQueriesAndOverridesAreMaskedToo(t *testing.T) {
	c := parse(t, `rules: [{name: a, key: [], limit: 5/1m, match: {query: {API_Key: s3cret, token: present, plan: shown}},
		overrides: [{match: {headers: {authorization: [s3cret]}, query: {token: [s3cret], plan: also}}, limit: 6/1m}]}]`)
	text := string(c.Effective())
	if strings.Contains(text, "s3cret") || strings.Count(text, mask) != 3 || !strings.Contains(text, "shown") ||
		!strings.Contains(text, "also") || !strings.Contains(text, "token: present") {
		t.Errorf("the effective form is\n%s", text)
	}
	r := c.Rules[0]
	if r.Match.Query[0].Values[0] != "s3cret" || r.Overrides[0].Match.Headers[0].Values[0] != "s3cret" {
		t.Error("the rule itself has lost its values")
	}
}

func TestARedisURLHasNoOptionThatTheDaemonSetsItself(t *testing.T) {
	good := map[string][]string{
		"single":  {"redis://cache/1", "redis://cache?db=1", "rediss://cache/1?skip_verify=true", "unix:///run/redis.sock?db=1"},
		"cluster": {"redis://a", "redis://a:1/0", "rediss://u:p@a:1?addr=b:1&addr=c:1"},
		"sentinel": {"redis://a:1/2?master_name=m", "rediss://u:p@a:1?master_name=m&addr=b:1&username=u&password=p&skip_verify=true",
			"redis://a?db=1&master_name=m"},
	}
	for mode, urls := range good {
		for _, url := range urls {
			if err := checkRedisURL(mode, url); err != nil {
				t.Errorf("%s: %s %v", mode, url, err)
			}
		}
	}
	for _, option := range []string{
		"dial_timeout=1s", "read_timeout=1s", "write_timeout=1s", "pool_timeout=1s", "max_retries=3", "pool_size=7", "protocol=3",
		"client_name=other", "pool_fifo=true", "min_idle_conns=1", "conn_max_idle_time=1s",
	} {
		name, value, _ := strings.Cut(option, "=")
		for url, mode := range map[string]string{
			"redis://cache?": "single", "rediss://cache?db=1&": "single", "unix:///run/redis.sock?": "single",
			"redis://a?addr=b:1&": "cluster", "redis://a?master_name=m&": "sentinel",
		} {
			err := checkRedisURL(mode, url+option)
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "="+value) {
				t.Errorf("%s%s: %v", url, option, err)
			}
		}
	}
}

func TestNoMessageRepeatsAPassword(t *testing.T) {
	for _, url := range []string{
		"redis://:s3/cret@cache", "redis://:s3cret@cache:port", "http://:s3cret@cache", "redis://u:s3cret@cache/x/y",
		"redis://u:s3cret@cache?addr=s3cret", "redis://cache?client_name=s3cret", "redis://u:12?s3cret@cache", "redis://a?db=1;s3cret",
		"redis://u@cache?s3cret=1", "redis://u:%s3cret@cache", "s3cret", "rediss://[s3cret",
	} {
		for _, mode := range storeModes {
			_, _, err := Parse("a.yaml", []byte("store: {redis: {url: \""+url+"\", mode: "+mode+"}}"), nil)
			if err == nil && mode == "single" || err != nil && strings.Contains(err.Error(), "cret") {
				t.Errorf("%s: %s: %v", mode, url, err)
			}
		}
		if err := parse(t, "rules: []").UseRedis(url); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestBothPasswordsOfAURLForSentinelsAreMasked(t *testing.T) {
	c := parse(t, `store: {redis: {mode: sentinel, url: "redis://u:s3cret@a:1?master_name=m&username=v&password=s3cret2"}}`)
	text := string(c.Effective())
	if strings.Contains(text, "s3cret") || !strings.Contains(text, "master_name=m") || strings.Count(text, mask) != 2 {
		t.Errorf("the effective form is\n%s", text)
	}
}

func TestAURLThatReplacesThatOfTheFileIsOneForItsMode(t *testing.T) {
	c := parse(t, "store: {redis: {url: redis://a, mode: cluster}}")
	if err := c.UseRedis("redis://b?addr=c:1"); err != nil {
		t.Error(err)
	}
	if err := c.UseRedis("unix:///run/redis.sock"); err == nil {
		t.Error("a socket of a cluster is no error")
	}
}

func TestUseRedisReplacesTheURLAlone(t *testing.T) {
	c := parse(t, "store: {redis: {url: redis://a, timeout: 5ms, key_prefix: x}}")
	before := c.Hash()
	if err := c.UseRedis("redis://b"); err != nil {
		t.Fatal(err)
	}
	if r := c.Store.Redis; r.URL != "redis://b" || r.KeyPrefix != "x" || r.Timeout.String() != "5ms" || c.Hash() == before {
		t.Errorf("%+v", r)
	}
	c = parse(t, "rules: []")
	if err := c.UseRedis("redis://b"); err != nil {
		t.Fatal(err)
	}
	if r := c.Store.Redis; *r != (Redis{URL: "redis://b", Mode: "single", Timeout: defaultRedis().Timeout, KeyPrefix: "rl"}) {
		t.Errorf("%+v", r)
	}
}

func TestOnlyListenAdminAndStoreNeedARestart(t *testing.T) {
	base := parse(t, "rules: []")
	tests := map[string][]string{
		"rules: [{name: a, action: deny}]": nil,
		"log: {level: debug}":              nil,
		"client_ip: {from: envoy}":         nil,
		"response: {status: 503}":          nil,
		"on_store_error: deny":             nil,
		"listen: 127.0.0.1:9001":           nil,
		"listen: 127.0.0.1:9003":           {"listen"},
		"admin: \"\"":                      {"admin"},
		"store: {memory: {max_keys: 5}}":   {"store"},
		"store: {redis: {url: redis://a}}": {"store"},
		"{listen: [\":1\", \":2\"], admin: \":3\", store: {memory: {max_keys: 5}}}": {"listen", "admin", "store"},
	}
	for text, want := range tests {
		if got := base.RestartNeeded(parse(t, text)); !slices.Equal(got, want) {
			t.Errorf("%s needs a restart for %v, want %v", text, got, want)
		}
	}
	a, b := parse(t, withPassword), parse(t, withPassword)
	if got := a.RestartNeeded(b); got != nil {
		t.Errorf("the same Redis needs a restart for %v", got)
	}
}

func TestTheEffectiveFormOfManyRulesIsOneList(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 2*rulesAtOnce + 1 {
		fmt.Fprintf(&text, "- {name: r%d, key: [client_ip, header.a], limit: 10/1m, match: {paths: [/a, /b/*], headers: {x: [%d, a]}}}\n", i, i)
	}
	c := parse(t, text.String())
	whole := c.head()
	whole.Rules = rulesOf(c.Rules)
	want, err := yaml.Dump(whole)
	if err != nil || !bytes.Equal(c.Effective(), want) {
		t.Errorf("not what is written at once, error %v", err)
	}
}
