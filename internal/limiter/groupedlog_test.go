package limiter

import (
	"testing"
	"time"
)

func grouped(quota uint32) Limit {
	return Limit{Algorithm: GroupedLog, Quota: quota, Window: time.Minute}
}

func TestUpToThirtyTwoAGroupedLogIsExact(t *testing.T) {
	run(t, grouped(2), []row{
		{at: 0, want: "A 1 1m0s"},
		{at: 30 * time.Second, want: "A 0 30s"},
		{at: 40 * time.Second, want: "D 20s"},
		{at: 60 * time.Second, want: "A 0 30s"},
	})
}

func TestAGroupLeavesWithItsNewestHit(t *testing.T) {
	run(t, grouped(64), []row{ // groups of two
		{at: 0, want: "A 63 1m0s"},
		{at: 10 * time.Second, want: "A 62 1m0s"},
		{at: 20 * time.Second, want: "A 61 50s"},
		{at: 60 * time.Second, look: true, want: "A 61 10s"},
		{at: 70 * time.Second, look: true, want: "A 63 10s"},
		{at: 70 * time.Second, cost: 64, want: "D 10s"},
		{at: 80 * time.Second, cost: 64, want: "A 0 1m0s"},
	})
}

func TestAGroupedLogWaitsForAsManyGroupsAsTheCostNeeds(t *testing.T) {
	run(t, grouped(4), []row{
		{at: 0, cost: 2},
		{at: 10 * time.Second},
		{at: 20 * time.Second, want: "A 0 40s"},
		{at: 30 * time.Second, cost: 2, want: "D 30s"},
		{at: 30 * time.Second, cost: 3, want: "D 40s"},
		{at: 30 * time.Second, cost: 4, want: "D 50s"},
	})
}

func TestAGroupedLogStaysSmallWhateverTheQuota(t *testing.T) {
	s, l := new(groupedLog), grouped(1_000_000)
	for i := range int64(200_000) {
		takeOne(s, l, 10, aligned+i)
	}
	if len(s.groups) > groups+1 {
		t.Errorf("%d groups", len(s.groups))
	}
}
