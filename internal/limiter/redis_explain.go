package limiter

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// maxReply bounds the text of an error reply, in bytes.
const maxReply = 200

// hints are what error replies tell of the server, where it is one for another mode than that of the store.
var hints = []struct{ mode, reply, hint string }{
	{ModeCluster, "MOVED ", "this is a node of a Redis Cluster: is store.redis.mode: cluster meant?"},
	{ModeCluster, "CROSSSLOT ", "this is a node of a Redis Cluster: is store.redis.mode: cluster meant?"},
	{ModeSingle, "cluster support disabled", "this is no node of a Redis Cluster: is store.redis.mode: single or sentinel meant?"},
	{ModeSingle, "unknown command 'sentinel'", "this is no sentinel: is store.redis.mode: single or the port of a sentinel meant?"},
	{ModeSentinel, "unknown command 'script'", "this seems to be a sentinel: is store.redis.mode: sentinel meant?"},
	{ModeSentinel, "unknown command 'cluster'", "this seems to be a sentinel: is store.redis.mode: sentinel meant?"},
}

// explained is an error with another text.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

// explain makes an error reply fit for a line of the log, and says if it looks as if another mode was meant.
func explain(mode string, err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	// What stands behind that repeats what was sent: a script, and perhaps a password.
	text, _, _ := strings.Cut(err.Error(), ", with args beginning with")
	if len(text) > maxReply {
		text = strings.ToValidUTF8(text[:maxReply], "") + "…"
	}
	plain := strings.ReplaceAll(text, "`", "'") // of Redis 6
	for _, h := range hints {
		if h.mode != mode && strings.Contains(plain, h.reply) {
			text += " (" + h.hint + ")"
			break
		}
	}
	return explained{err, text}
}

// joined is all of the errors on one line.
func joined(errs []error) error {
	all := errors.Join(errs...)
	return explained{all, strings.ReplaceAll(all.Error(), "\n", "; ")}
}
