package rules

import (
	"slices"
	"strings"
)

// index finds the few rules that can match a request among many, by what they ask of host, path and method. It may name rules
// that do not match, and never omits one that does. Rules are named by their number.
type index struct {
	// hosts holds the rules by host pattern: a host, ".example.org" for the hosts below it, "" for every host.
	hosts map[string]*pathIndex
	// longestSuffix bounds the search for the names that begin with a dot.
	longestSuffix int
}

// pathIndex holds rules by the path patterns, or by what is left of them after a `*`.
type pathIndex struct {
	places  map[string]*place // by the literal segments that come next, "" for none
	longest int               // of the literals
}

// place is where the literal segments of patterns end.
type place struct {
	exact byMethod   // the rules whose pattern ends here
	below byMethod   // and those that match whatever follows: `/**`, a regular expression, no paths
	star  *pathIndex // the rules whose pattern goes on with a `*`, by what is left after it; nil when there is none
}

// byMethod holds the numbers of rules; each list ascends.
type byMethod struct {
	any     []int32 // for every method
	methods map[string][]int32
}

// add files a rule; numbers must ascend.
func (x *index) add(number int32, m *Match) {
	if x.hosts == nil {
		x.hosts = map[string]*pathIndex{}
	}
	if len(m.Hosts) == 0 {
		x.addPaths("", number, m)
	}
	for _, pattern := range m.Hosts {
		if strings.HasPrefix(pattern.host, ".") {
			x.longestSuffix = max(x.longestSuffix, len(pattern.host))
		}
		x.addPaths(pattern.host, number, m)
	}
}

func (x *index) addPaths(host string, number int32, m *Match) {
	paths := x.hosts[host]
	if paths == nil {
		paths = newPathIndex()
		x.hosts[host] = paths
	}
	if len(m.Paths) == 0 {
		paths.place("").below.add(number, m.Methods)
	}
	for _, pattern := range m.Paths {
		if path, below := pattern.beginning(); below {
			paths.place(path).below.add(number, m.Methods)
		} else {
			paths.place(path).exact.add(number, m.Methods)
		}
	}
}

func newPathIndex() *pathIndex { return &pathIndex{places: map[string]*place{}} }

// place returns where the segments of a pattern end, a new place if need be.
func (p *pathIndex) place(pattern string) *place {
	literal, rest, wild := strings.Cut(pattern, "/*")
	at := p.places[literal]
	if at == nil {
		at = new(place)
		p.places[literal] = at
		p.longest = max(p.longest, len(literal))
	}
	if !wild {
		return at
	}
	if at.star == nil {
		at.star = newPathIndex()
	}
	return at.star.place(rest)
}

func (l *byMethod) add(number int32, methods []string) {
	if len(methods) == 0 {
		l.any = addNumber(l.any, number)
	}
	for _, method := range methods {
		if l.methods == nil {
			l.methods = map[string][]int32{}
		}
		l.methods[method] = addNumber(l.methods[method], number)
	}
}

func addNumber(list []int32, number int32) []int32 {
	if len(list) > 0 && list[len(list)-1] == number {
		return list
	}
	return append(list, number)
}

// appendTo appends the rules for a method.
func (l *byMethod) appendTo(numbers []int32, method string) []int32 {
	numbers = append(numbers, l.any...)
	if l.methods != nil {
		numbers = append(numbers, l.methods[method]...)
	}
	return numbers
}

// find appends the numbers of the rules that can match, ascending, each once. It looks only as far into host and path as
// the rules do, whatever their length.
func (x *index) find(numbers []int32, f *facts) []int32 {
	numbers = x.findHost(numbers, "", f)
	if f.hostOK {
		numbers = x.findHost(numbers, f.host, f)
		for i := len(f.host) - 1; i >= 0 && len(f.host)-i <= x.longestSuffix; i-- {
			if f.host[i] == '.' {
				numbers = x.findHost(numbers, f.host[i:], f)
			}
		}
	}
	for i := 1; i < len(numbers); i++ {
		if numbers[i-1] >= numbers[i] {
			slices.Sort(numbers)
			return slices.Compact(numbers)
		}
	}
	return numbers
}

// findHost appends the rules under a host pattern. Of a path of which nothing can be said only those for every path match.
func (x *index) findHost(numbers []int32, host string, f *facts) []int32 {
	paths := x.hosts[host]
	switch {
	case paths == nil:
		return numbers
	case f.pathOK:
		return paths.find(numbers, f.path, f.req.Method)
	}
	if every := paths.places[""]; every != nil {
		return every.below.appendTo(numbers, f.req.Method)
	}
	return numbers
}

// find appends the rules for a path, or for what is left of it.
func (p *pathIndex) find(numbers []int32, path, method string) []int32 {
	for end := 0; end <= min(p.longest, len(path)); end++ {
		if end > 0 && end < len(path) && path[end] != '/' {
			continue
		}
		at := p.places[path[:end]]
		if at == nil {
			continue
		}
		numbers = at.below.appendTo(numbers, method)
		if end == len(path) {
			numbers = at.exact.appendTo(numbers, method)
		} else if at.star != nil {
			_, rest := cutSegment(path[end:])
			numbers = at.star.find(numbers, rest, method)
		}
	}
	return numbers
}
