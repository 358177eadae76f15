package authz

import (
	"unicode/utf8"
	"unsafe"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The numbers of the fields that are read, from Envoy's .proto files, by their messages.
const (
	checkAttributes = 1

	contextSource     = 1
	contextRequest    = 4
	contextExtensions = 10
	contextMetadata   = 11

	peerAddress   = 1
	peerPrincipal = 4

	addressSocket, addressPipe, addressInternal = 1, 2, 3 // one of them
	socketAddress                               = 2

	requestHTTP = 2

	httpMethod, httpHeaders, httpPath, httpHost = 2, 3, 4, 5
	httpHeaderMap                               = 13

	headerMapHeaders                      = 1
	headerKey, headerText, headerRawValue = 1, 2, 3

	entryKey, entryValue = 1, 2 // of a map
)

// readUsual reads a CheckRequest as Envoy writes it, and reports whether it is one; if not, nothing that was read means
// anything. Of what no rule reads it sees the outermost bytes alone.
func (c *call) readUsual(reads *rules.Reads) bool {
	var attributes []byte
	w := walk{rest: c.data}
	for w.next() {
		if w.number == checkAttributes && !w.once(&attributes) {
			return false
		}
	}
	c.empty = attributes == nil
	return !w.broken && c.readAttributes(attributes, reads)
}

func (c *call) readAttributes(message []byte, reads *rules.Reads) bool {
	var source, request, metadata []byte
	w := walk{rest: message}
	for w.next() {
		ok := true
		switch w.number {
		case contextSource:
			ok = w.once(&source)
		case contextRequest:
			ok = w.once(&request)
		case contextMetadata:
			ok = w.once(&metadata)
		case contextExtensions:
			ok = !reads.Extensions || w.value == nil || c.readExtension(w.value)
		}
		if !ok {
			return false
		}
	}
	return !w.broken && c.readSource(source) && c.readRequest(request, reads) &&
		(!reads.Metadata || metadata == nil || c.readMetadata(metadata))
}

func (c *call) readSource(message []byte) bool {
	var address []byte
	w := walk{rest: message}
	for w.next() {
		if w.number == peerAddress && !w.once(&address) ||
			w.number == peerPrincipal && !w.text(&c.request.Principal) {
			return false
		}
	}
	return !w.broken && c.readAddress(address)
}

func (c *call) readAddress(message []byte) bool {
	var kind, socket []byte
	w := walk{rest: message}
	for w.next() {
		switch w.number {
		case addressSocket, addressPipe, addressInternal:
			if !w.once(&kind) {
				return false
			}
			if w.number == addressSocket {
				socket = kind
			}
		}
	}
	var text string
	s := walk{rest: socket}
	for s.next() {
		if s.number == socketAddress && !s.text(&text) {
			return false
		}
	}
	c.request.Peer = parsePeer(text)
	return !w.broken && !s.broken
}

func (c *call) readRequest(message []byte, reads *rules.Reads) bool {
	var http []byte
	w := walk{rest: message}
	for w.next() {
		if w.number == requestHTTP && !w.once(&http) {
			return false
		}
	}
	return !w.broken && (http == nil || c.readHTTP(http, reads))
}

func (c *call) readHTTP(message []byte, reads *rules.Reads) bool {
	r := &c.request
	r.HTTP, r.Headers = true, c.lines[:0]
	var headerMap []byte
	w := walk{rest: message}
	for w.next() {
		ok := true
		switch w.number {
		case httpMethod:
			ok = w.text(&r.Method)
		case httpPath:
			ok = w.text(&r.Path)
		case httpHost:
			ok = w.text(&r.Host)
		case httpHeaders:
			ok = w.value == nil || c.readHeader(w.value, reads)
		case httpHeaderMap:
			ok = w.once(&headerMap)
		}
		if !ok {
			return false
		}
	}
	return !w.broken && c.readHeaderMap(headerMap, reads)
}

// readHeader reads an entry of the map in which Envoy joins repeated headers. Of two entries protobuf keeps one.
func (c *call) readHeader(message []byte, reads *rules.Reads) bool {
	e := entry{}
	if !e.read(message) || !isLower(e.key) {
		return false
	}
	name := view(e.key)
	if !reads.Header(name) {
		return true
	}
	for _, line := range c.request.Headers {
		if line.Name == name {
			return false
		}
	}
	c.request.Headers = append(c.request.Headers, rules.Header{Name: name, Value: view(e.value)})
	return utf8.Valid(e.value)
}

// readHeaderMap reads the list of the lines as they came, which Envoy sends with encode_raw_headers. It goes before the map.
func (c *call) readHeaderMap(message []byte, reads *rules.Reads) bool {
	first := true
	w := walk{rest: message}
	for w.next() {
		if w.number != headerMapHeaders || w.value == nil {
			continue
		}
		if first {
			c.request.Headers, first = c.request.Headers[:0], false
		}
		if !c.readRawHeader(w.value, reads) {
			return false
		}
	}
	return !w.broken
}

func (c *call) readRawHeader(message []byte, reads *rules.Reads) bool {
	var value []byte
	key, message := cut(message, headerKey)
	raw, message := cut(message, headerRawValue)
	w := walk{rest: message}
	for w.next() {
		if w.value == nil {
			continue
		}
		switch w.number {
		case headerKey:
			key = w.value
		case headerText:
			value = w.value
		case headerRawValue:
			raw = w.value
		}
	}
	name := view(key)
	if w.broken || !isLower(key) || !utf8.Valid(value) {
		return false
	}
	if reads.Header(name) {
		if len(raw) > 0 {
			value = raw
		}
		c.request.Headers = append(c.request.Headers, rules.Header{Name: name, Value: view(value)})
	}
	return true
}

func (c *call) readExtension(message []byte) bool {
	e := entry{}
	if !e.read(message) || !utf8.Valid(e.key) || !utf8.Valid(e.value) {
		return false
	}
	if c.request.Extensions == nil {
		c.request.Extensions = map[string]string{}
	}
	c.request.Extensions[view(e.key)] = view(e.value)
	return true
}

func (c *call) readMetadata(message []byte) bool {
	decoded := &corev3.Metadata{}
	if proto.Unmarshal(message, decoded) != nil {
		return false
	}
	c.request.Metadata = filterMetadata{decoded}
	return true
}

// isLower reports whether a header's name is ASCII without capitals, as Envoy writes them.
func isLower(name []byte) bool {
	for _, b := range name {
		if b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// view is the bytes as a text, which is good for as long as they stay what they are.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
