package limiter

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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

// command is one call of a script.
type command struct {
	script *luaScript
	args   []any // evalsha and all behind it
	asking bool  // the bucket's slot is on its way to the server
}

// words is what a command is told beside the hits.
type words struct {
	ask     bool   // decide the enforced hits, and write nothing of them
	dated   bool   // say when it was
	spentAt string // for giveBack, when the hits were spent
}

// words returns the words of the command that runs a script on the hits, with the calendar's windows around now.
func (s *Redis) words(script *luaScript, hits []Hit, w words, now time.Time) []any {
	args := make([]any, 0, len(hits)+5)
	args = append(args, "evalsha", script.sha, len(hits))
	packed := make([]byte, 0, len(hits)*hitSize)
	for i := range hits {
		h, begin := &hits[i], len(packed)
		args = append(args, s.key(h))
		packed = appendHit(packed, h, now)
		if w.ask && !h.Shadow {
			packed[begin+1] |= flagAsk
		}
	}
	args = append(args, packed)
	last := w.spentAt
	if w.dated {
		last = "1"
	}
	switch {
	case s.now != nil:
		args = append(args, strconv.FormatInt(s.now(), 10))
	case last != "":
		args = append(args, "")
	}
	if last != "" {
		args = append(args, last)
	}
	return args
}

const (
	maxPrefix = 32 // as the configuration has it
	keyLength = 22 // of a Key in base64url
	tagLength = 6  // of a tag in base64url
)

// key is the name of a bucket in Redis: the prefix, a colon, in a cluster the tag in braces, and the bucket's Key.
func (s *Redis) key(h *Hit) string {
	var text [maxPrefix + 1 + 1 + tagLength + 1 + keyLength]byte
	name := append(append(text[:0], s.prefix...), ':')
	if s.origin.mode == ModeCluster {
		name = append(appendTag(append(name, '{'), h.Tag), '}')
	}
	return string(base64.RawURLEncoding.AppendEncode(name, h.Key[:]))
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
	reply, err := s.run(slot, command{script: driver, args: s.words(driver, hits, w, time.Now())}, deadline)
	if clock, yes := outside(reply); yes {
		reply, err = s.run(slot, command{script: driver, args: s.words(driver, hits, w, clock)}, deadline)
	}
	if err != nil {
		return nil, 0, err
	}
	if w.dated && len(reply) > 0 {
		at, reply = reply[len(reply)-1], reply[:len(reply)-1]
	}
	if decisions, err = decodeReply(hits, reply); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errReply, err)
	}
	return decisions, at, nil
}
