package limiter

import (
	"testing"
	"time"
)

// D77
func TestAShareIsThePartOfOneReplica(t *testing.T) {
	for _, row := range []struct{ quota, burst, replicas, wantQuota, wantBurst uint32 }{
		{90, 0, 1, 90, 0},
		{90, 0, 3, 30, 0},
		{100, 10, 3, 33, 3},
		{2, 1, 3, 1, 1},
		{0, 0, 3, 0, 0},
		{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1, 1},
	} {
		l := Limit{Algorithm: TokenBucket, Quota: row.quota, Window: time.Minute, Burst: row.burst, Tick: time.Millisecond}
		want := l
		want.Quota, want.Burst = row.wantQuota, row.wantBurst
		if got := l.Share(row.replicas); got != want {
			t.Errorf("%+v of %d: %+v", l, row.replicas, got)
		}
	}
}
