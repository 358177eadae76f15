package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"
)

// tree is a part of a YAML document.
type tree = map[string]any

// bootstrap is an Envoy's configuration, and those parts of it that differ between what is measured.
type bootstrap struct {
	whole, listener, filter, cluster tree
}

// The names that deploy/envoy.yaml uses.
const (
	deployedFile = "deploy/envoy.yaml"
	authzFilter  = "envoy.filters.http.ext_authz"
	daemonName   = "ratelimitd"
	upstreamName = "upstream"
)

// deployed returns deploy/envoy.yaml, in front of that upstream, and asking a daemon at that address; "" is one that nobody
// listens at. It has ports of its own, no access log, for what that costs depends on its format, and time limits that a busy
// machine can keep.
func deployed(upstream, daemon string) (*bootstrap, error) {
	text, err := os.ReadFile(deployedFile)
	if err != nil {
		return nil, err
	}
	b := new(bootstrap)
	if err := yaml.Unmarshal(text, &b.whole); err != nil {
		return nil, fmt.Errorf("%s: %w", deployedFile, err)
	}
	if err := b.find(); err != nil {
		return nil, fmt.Errorf("%s: %w", deployedFile, err)
	}
	edits := fmt.Sprintf(`
whole: {admin: {address: {socket_address: {port_value: 0}}}}
listener: {access_log: null}
filter: {failure_mode_allow: false, grpc_service: {timeout: 5s}}
cluster:
  load_assignment: %s
  typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {retry_policy: {retry_back_off: {max_interval: 5s}}}}
`, assignment(daemonName, daemon))
	if err := b.change(edits); err != nil {
		return nil, err
	}
	at(b.whole, "static_resources", "listeners", 0, "address", "socket_address")["port_value"] = 0
	return b, b.changePart(named(at(b.whole, "static_resources"), "clusters", upstreamName), "load_assignment: "+assignment(upstreamName, upstream))
}

// assignment is where the only endpoint of a cluster is, as YAML.
func assignment(cluster, address string) string {
	at := fmt.Sprintf("pipe: {path: %q}", address)
	if host, port, err := net.SplitHostPort(address); err == nil {
		at = fmt.Sprintf("socket_address: {address: %s, port_value: %s}", host, port)
	}
	return fmt.Sprintf("{cluster_name: %s, endpoints: [{lb_endpoints: [{endpoint: {address: {%s}}}]}]}", cluster, at)
}

// find looks up the parts.
func (b *bootstrap) find() error {
	b.listener = at(b.whole, "static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config")
	b.filter = at(named(b.listener, "http_filters", authzFilter), "typed_config")
	b.cluster = named(at(b.whole, "static_resources"), "clusters", daemonName)
	if b.listener == nil || b.filter == nil || b.cluster == nil {
		return errors.New("has no ext_authz filter or no cluster for ratelimitd")
	}
	return nil
}

// at follows keys and indexes; nil if they lead nowhere.
func at(from any, steps ...any) tree {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			m, _ := from.(tree)
			from = m[step]
		case int:
			list, _ := from.([]any)
			if step >= len(list) {
				return nil
			}
			from = list[step]
		}
	}
	m, _ := from.(tree)
	return m
}

// named returns the entry of a list that bears that name; nil if there is none.
func named(of tree, list, name string) tree {
	entries, _ := of[list].([]any)
	for i := range entries {
		if entry := at(entries, i); entry["name"] == name {
			return entry
		}
	}
	return nil
}

// change changes the parts that a YAML text names: whole, listener (the connection manager), filter, cluster.
func (b *bootstrap) change(text string) error {
	var patch map[string]tree
	if err := yaml.Unmarshal([]byte(text), &patch); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	parts := map[string]tree{"whole": b.whole, "listener": b.listener, "filter": b.filter, "cluster": b.cluster}
	for name, part := range patch {
		if parts[name] == nil {
			return fmt.Errorf("%s: there is no part %q", text, name)
		}
		merge(parts[name], part)
	}
	return nil
}

func (b *bootstrap) changePart(part tree, text string) error {
	var patch tree
	if err := yaml.Unmarshal([]byte(text), &patch); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	merge(part, patch)
	return nil
}

// merge puts a patch into a tree: maps are merged, null removes, all else takes the place of what was there.
func merge(into, patch tree) {
	for key, value := range patch {
		old, _ := into[key].(tree)
		change, isTree := value.(tree)
		switch {
		case value == nil:
			delete(into, key)
		case isTree && old != nil:
			merge(old, change)
		default:
			into[key] = value
		}
	}
}

// replaceFilter puts another filter in the place of ext_authz; nil: none.
func (b *bootstrap) replaceFilter(by tree) {
	delete(at(b.listener, "route_config", "virtual_hosts", 0, "routes", 0), "typed_per_filter_config")
	filters := b.listener["http_filters"].([]any)
	b.listener["http_filters"] = slices.DeleteFunc(filters, func(f any) bool { return by == nil && at(f)["name"] == authzFilter })
	if by != nil {
		entry := named(b.listener, "http_filters", authzFilter)
		clear(entry)
		maps.Copy(entry, by)
	}
}

// plain is what it takes to ask at all, everything else as Envoy does it by default.
const plain = `
filter:
  "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
  transport_api_version: V3
  grpc_service: {timeout: 5s, envoy_grpc: {cluster_name: ratelimitd}}
cluster:
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      explicit_http_config: {http2_protocol_options: {}}
`

// makePlain leaves nothing of the settings of the filter and the cluster but what it takes to ask.
func (b *bootstrap) makePlain() error {
	clear(b.filter)
	maps.DeleteFunc(b.cluster, func(key string, _ any) bool {
		return !slices.Contains([]string{"name", "type", "connect_timeout", "load_assignment"}, key)
	})
	return b.change(plain)
}

// text is the configuration as Envoy reads it.
func (b *bootstrap) text() (string, error) {
	text, err := json.Marshal(b.whole)
	return string(text), err
}
