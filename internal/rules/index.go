package rules

import (
	"slices"
	"strings"
)

// index finds the few rules that can match a request among many, by what they ask of host, path and method. It may name rules
// that do not match, and never omits one that does. Rules are named by their number.
type index struct {
	// hosts holds, by host pattern, the node at which its paths begin: a host, ".example.org" for the hosts below it, "" for
	// every host.
	hosts map[string]int32
	// longestSuffix bounds the search for the names that begin with a dot.
	longestSuffix int

	// nodes are a tree of path segments under each host. The first one is nobody's.
	nodes []node
	// edges lead from a node by a literal segment to the next.
	edges map[edge]int32
}

type edge struct {
	from    int32
	segment string
}

// node is the beginning of the patterns that have the same segments so far.
type node struct {
	star  int32    // the node for a `*` as next segment; 0 when there is none
	exact byMethod // the rules whose pattern ends here
	below byMethod // and those that match whatever follows: `/**`, a regular expression, no paths
}

// byMethod holds the numbers of rules; each list ascends.
type byMethod struct {
	any     []int32 // for every method
	methods map[string][]int32
}

// add files a rule; numbers must ascend.
func (x *index) add(number int32, m *Match) {
	if x.hosts == nil {
		x.hosts, x.edges, x.nodes = map[string]int32{}, map[edge]int32{}, make([]node, 1)
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
	root, ok := x.hosts[host]
	if !ok {
		root = x.newNode()
		x.hosts[host] = root
	}
	if len(m.Paths) == 0 {
		x.nodes[root].below.add(number, m.Methods)
	}
	for _, pattern := range m.Paths {
		segments, below := pattern.beginning()
		n := x.nodeFor(root, segments)
		if below {
			n.below.add(number, m.Methods)
		} else {
			n.exact.add(number, m.Methods)
		}
	}
}

// nodeFor returns the node after the segments of a pattern. It is good until the next one is made.
func (x *index) nodeFor(root int32, segments string) *node {
	at := root
	for segments != "" {
		var segment string
		segment, segments = cutSegment(segments)
		at = x.child(at, segment)
	}
	return &x.nodes[at]
}

// child returns the node after a segment of a pattern, a new one if need be.
func (x *index) child(at int32, segment string) int32 {
	next := x.nodes[at].star
	if segment != "*" {
		next = x.edges[edge{at, segment}]
	}
	if next != 0 {
		return next
	}
	next = x.newNode()
	if segment == "*" {
		x.nodes[at].star = next
	} else {
		x.edges[edge{at, segment}] = next
	}
	return next
}

func (x *index) newNode() int32 {
	x.nodes = append(x.nodes, node{})
	return int32(len(x.nodes) - 1)
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

// find appends the numbers of the rules that can match, ascending, each once. It looks only at as much of host and path as the
// rules do, whatever their length.
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
	root, ok := x.hosts[host]
	switch {
	case !ok:
		return numbers
	case !f.pathOK:
		return x.nodes[root].below.appendTo(numbers, f.req.Method)
	}
	return x.findPath(numbers, root, f.path, f.req.Method)
}

// findPath appends the rules for a path, the segments up to a node being behind and rest before.
func (x *index) findPath(numbers []int32, at int32, rest, method string) []int32 {
	for {
		n := &x.nodes[at]
		numbers = n.below.appendTo(numbers, method)
		if rest == "" {
			return n.exact.appendTo(numbers, method)
		}
		var segment string
		segment, rest = cutSegment(rest)
		if n.star != 0 {
			numbers = x.findPath(numbers, n.star, rest, method)
		}
		var ok bool
		if at, ok = x.edges[edge{at, segment}]; !ok {
			return numbers
		}
	}
}
