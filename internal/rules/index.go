package rules

import (
	"slices"
	"strings"
)

// index finds the few rules that can match a request among many, by what they ask of host and path. It may name rules that
// do not match, and never omits one that does. Rules are named by their number.
type index struct {
	// hosts holds the rules by host pattern: a host, ".example.org" for the hosts below it, "" for every host.
	hosts map[string]*pathIndex
	// longestSuffix bounds the search for the names that begin with a dot.
	longestSuffix int
}

// pathIndex holds the rules by the literal beginning of their path patterns, "" for every path; each list ascends.
type pathIndex struct {
	rules   map[string][]int32
	longest int // of the literals
}

// add files a rule; numbers must ascend.
func (x *index) add(number int32, m *Match) {
	if x.hosts == nil {
		x.hosts = map[string]*pathIndex{}
	}
	if len(m.Hosts) == 0 {
		x.addPaths("", number, m.Paths)
	}
	for _, pattern := range m.Hosts {
		if strings.HasPrefix(pattern.host, ".") {
			x.longestSuffix = max(x.longestSuffix, len(pattern.host))
		}
		x.addPaths(pattern.host, number, m.Paths)
	}
}

func (x *index) addPaths(host string, number int32, patterns []PathPattern) {
	paths := x.hosts[host]
	if paths == nil {
		paths = &pathIndex{rules: map[string][]int32{}}
		x.hosts[host] = paths
	}
	if len(patterns) == 0 {
		paths.add("", number)
	}
	for _, pattern := range patterns {
		paths.add(pattern.literal(), number)
	}
}

func (p *pathIndex) add(literal string, number int32) {
	list := p.rules[literal]
	if len(list) > 0 && list[len(list)-1] == number {
		return
	}
	p.rules[literal] = append(list, number)
	p.longest = max(p.longest, len(literal))
}

// find appends the numbers of the rules that can match, ascending, each once. It looks only as far into host and path as
// the rules do, whatever their length.
func (x *index) find(numbers []int32, f *facts) []int32 {
	lists := 0
	collect := func(host string) {
		if paths := x.hosts[host]; paths != nil {
			var n int
			numbers, n = paths.find(numbers, f)
			lists += n
		}
	}
	collect("")
	if f.hostOK {
		collect(f.host)
		for i := len(f.host) - 1; i >= 0 && len(f.host)-i <= x.longestSuffix; i-- {
			if f.host[i] == '.' {
				collect(f.host[i:])
			}
		}
	}
	if lists < 2 {
		return numbers
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// find appends the numbers of the rules for the request's path and reports how many lists they came from.
func (p *pathIndex) find(numbers []int32, f *facts) (_ []int32, lists int) {
	collect := func(literal string) {
		if list := p.rules[literal]; len(list) > 0 {
			numbers = append(numbers, list...)
			lists++
		}
	}
	collect("")
	if !f.pathOK {
		return numbers, lists
	}
	for end := 1; end <= min(len(f.path), p.longest); end++ {
		if end == len(f.path) || f.path[end] == '/' {
			collect(f.path[:end])
		}
	}
	return numbers, lists
}
