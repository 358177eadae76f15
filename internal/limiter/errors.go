package limiter

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// errCircuitOpen answers for a Redis that is not asked because it gave no answer to the takes before.
var errCircuitOpen = errors.New("redis is not asked until it answers again")

// errUnserved says that no server is known to hold a bucket's slot.
var errUnserved = errors.New("no node of the cluster holds the slot")

// errReply says that Redis answered something that is no answer to the hits. It is wrapped by what exactly was wrong.
var errReply = errors.New("redis sent a reply of the wrong shape")

// errorReplies are the beginnings of Redis's error replies that have a name of their own. Before 7.0 Redis puts what fails
// inside a script into a sentence of its own, so that they stand anywhere in it.
var errorReplies = []struct{ code, reason string }{
	{"READONLY ", "readonly"},
	{"MOVED ", "moved"},
	{"ASK ", "moved"},
	{"TRYAGAIN ", "tryagain"},
	{"CLUSTERDOWN ", "clusterdown"},
	{"CROSSSLOT ", "crossslot"},
	{"LOADING ", "loading"},
	{"OOM ", "oom"},
	{"NOSCRIPT ", "noscript"},
	{"NOREPLICAS ", "noreplicas"},
	{"NOAUTH ", "auth"},
	{"WRONGPASS ", "auth"},
	{"NOPERM ", "auth"},
}

// ErrorReason names the cause of a store's error in one word of a bounded list, fit to be a metric label: timeout, refused,
// connection, readonly, moved, tryagain, clusterdown, crossslot, loading, oom, noscript, noreplicas, auth, reply, breaker or other.
// It is "" for no error.
func ErrorReason(err error) string {
	var reply redis.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errCircuitOpen):
		return "breaker"
	case errors.Is(err, errUnserved):
		return "clusterdown"
	case errors.Is(err, errReply):
		return "reply"
	case errors.As(err, &reply):
		for _, e := range errorReplies {
			if strings.Contains(reply.Error(), e.code) {
				return e.reason
			}
		}
		return "other"
	}
	return transportReason(err)
}

// transportReason names the cause of an error that is no reply of Redis.
func transportReason(err error) string {
	var network net.Error
	isNetwork := errors.As(err, &network)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist): // a Unix socket that is not there
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout), isNetwork && network.Timeout():
		return "timeout"
	case isNetwork, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, redis.ErrClosed):
		return "connection"
	}
	return "other"
}
