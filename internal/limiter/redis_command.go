package limiter

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimitd/ratelimitd/lua"
)

// luaScript is a text that Redis runs, and what Redis calls it by.
type luaScript struct{ text, sha string }

func newScript(text string) *luaScript {
	sum := sha1.Sum([]byte(text))
	return &luaScript{text, hex.EncodeToString(sum[:])}
}

var (
	driver   = newScript(lua.Driver)
	giveBack = newScript(lua.GiveBack)
)

// command is one call of a script: a request's, or several of one slot together. The zero value has no script.
type command struct {
	script  *luaScript
	slot    uint16
	buckets int
	keys    []byte   // of the buckets, as words of RESP
	packed  []byte   // the request, as the script reads it
	last    []string // what the script is told beside
	asking  bool     // the slot is on its way to the server
}

// words is what a command is told beside the hits.
type words struct {
	ask     bool   // decide the enforced hits, and write nothing of them
	dated   bool   // say when it was
	spentAt string // for giveBack, when the hits were spent
}

// command makes c run a script on the hits of a request, with the calendar's windows around now.
func (s *Redis) command(c *command, script *luaScript, slot uint16, hits []Hit, w words, now time.Time) {
	c.script, c.slot, c.asking, c.buckets, c.keys, c.last = script, slot, false, len(hits), c.keys[:0], nil
	for i := range hits {
		c.keys = s.appendKey(c.keys, &hits[i])
	}
	var flags byte
	if w.ask {
		flags = flagAsk
	}
	c.packed = appendRequest(c.packed[:0], hits, now, flags)
	last := w.spentAt
	if w.dated {
		last = "1"
	}
	switch {
	case s.now != nil:
		c.last = append(c.last, strconv.FormatInt(s.now(), 10))
	case last != "":
		c.last = append(c.last, "")
	}
	if last != "" {
		c.last = append(c.last, last)
	}
}

// joins reports whether one call of a script can carry both, so that each gets its reply as if it were alone.
func (c *command) joins(other *command) bool {
	return c.script == driver && other.script == driver && c.slot == other.slot && !c.asking && !other.asking &&
		len(c.last) < 2 && slices.Equal(c.last, other.last)
}

const (
	keyLength = 22 // of a Key in base64url
	tagLength = 6  // of a tag in base64url
)

// appendKeyHead appends how the name of every bucket begins in RESP.
func appendKeyHead(dst []byte, prefix, mode string) []byte {
	length := len(prefix) + 1 + keyLength
	if mode == ModeCluster {
		length += 1 + tagLength + 1
	}
	return append(append(appendHead(dst, '$', length), prefix...), ':')
}

// appendKey appends the name of a bucket in Redis, as a word of RESP: the prefix, a colon, in a cluster the tag in braces, and
// the bucket's Key.
func (s *Redis) appendKey(dst []byte, h *Hit) []byte {
	dst = append(dst, s.keyHead...)
	if s.origin.mode == ModeCluster {
		dst = append(appendTag(append(dst, '{'), h.Tag), '}')
	}
	return append(base64.RawURLEncoding.AppendEncode(dst, h.Key[:]), '\r', '\n')
}

// key is the name of a bucket in Redis.
func (s *Redis) key(h *Hit) string {
	word := s.appendKey(nil, h)
	return string(word[bytes.IndexByte(word, '\n')+1 : len(word)-2])
}

func appendTag(dst []byte, tag uint32) []byte {
	var raw [4]byte
	binary.BigEndian.PutUint32(raw[:], tag)
	return base64.RawURLEncoding.AppendEncode(dst, raw[:])
}

// slotCount is how many slots a cluster has.
const slotCount = 1 << 14

// slotOf is the slot of a cluster in which the buckets of that tag lie.
func slotOf(tag uint32) uint16 {
	var text [tagLength]byte
	return crc16(appendTag(text[:0], tag)) % slotCount
}

// crc16 is the CRC-16/XMODEM of the text, by which a cluster chooses a key's slot.
func crc16(text []byte) (crc uint16) {
	for _, b := range text {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[i] = crc
	}
	return table
}()

// runDriver decides hits that lie in one slot, and returns when that was if it is to be dated.
func (s *Redis) runDriver(slot uint16, hits []Hit, w words, deadline time.Time) (decisions []Decision, at int64, err error) {
	c, now := newCall(), time.Now()
	defer c.free()
	s.command(&c.command, driver, slot, hits, w, now)
	if err = s.run(c, now, deadline); err != nil {
		return nil, 0, err
	}
	if clock, yes := outside(c.reply); yes {
		s.command(&c.command, driver, slot, hits, w, clock)
		if err = s.run(c, time.Now(), deadline); err != nil {
			return nil, 0, err
		}
	}
	reply := c.reply
	if w.dated && len(reply) > 0 {
		at, reply = reply[len(reply)-1], reply[:len(reply)-1]
	}
	if decisions, err = decodeReply(hits, reply); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errReply, err)
	}
	return decisions, at, nil
}
