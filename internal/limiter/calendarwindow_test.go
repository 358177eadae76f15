package limiter

import (
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// calendarLimit is a limit as the configuration makes it.
func calendarLimit(quota uint32, period Period, zone string) Limit {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	c := Calendar{period, location}
	return Limit{Algorithm: CalendarWindow, Quota: quota, Window: c.Longest(), Calendar: c, Tick: time.Second}
}

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.9", text)
	if err != nil {
		panic(err)
	}
	return t
}

// D114, D115
func TestACalendarWindowEndsAtItsBoundary(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, c *clock) {
		month, week := calendarLimit(10, Month, "UTC"), calendarLimit(10, Week, "UTC")
		newYork, year := calendarLimit(10, Day, "America/New_York"), calendarLimit(10, Year, "Europe/Berlin")
		for i, step := range []struct {
			limit     Limit
			at        string
			cost      uint32
			allowed   bool
			remaining uint32
			wait      time.Duration
		}{
			{month, "2030-01-31 23:59:59.9", 10, true, 0, 100 * time.Millisecond},
			{month, "2030-02-01 00:00:00.1", 1, true, 9, 28*24*time.Hour - 100*time.Millisecond},
			{month, "2030-02-10 00:00:00", 10, false, 0, 19 * 24 * time.Hour},
			{week, "2030-02-10 23:59:59", 10, true, 0, time.Second}, // a Sunday
			{week, "2030-02-11 00:00:00", 1, true, 9, 7 * 24 * time.Hour},
			{newYork, "2030-03-10 05:00:00", 10, true, 0, 23 * time.Hour}, // midnight of the day with 23 hours
			{newYork, "2030-03-11 03:59:59", 1, false, 0, time.Second},
			{newYork, "2030-03-11 04:00:00", 1, true, 9, 24 * time.Hour},
			{newYork, "2030-11-03 04:00:00", 10, true, 0, 25 * time.Hour},
			{newYork, "2030-11-04 04:59:59", 1, false, 0, time.Second},
			{newYork, "2030-11-04 05:00:00", 1, true, 9, 24 * time.Hour},
			{year, "2030-12-31 22:59:59", 10, true, 0, time.Second},
			{year, "2030-12-31 23:00:00", 1, true, 9, 365 * 24 * time.Hour},
		} {
			c.ms.Store(at(step.at).UnixMilli())
			d := mustTake(t, s, hitOf(uint64(step.limit.Calendar.Period), step.limit, step.cost))[0]
			if d.Allowed != step.allowed || d.Remaining != step.remaining || d.ResetAfter+d.RetryAfter != step.wait {
				t.Fatalf("step %d, %s: %+v, want %v, %d, %v", i, step.at, d, step.allowed, step.remaining, step.wait)
			}
		}
	})
}

// D92
func TestACountIsCarriedFromOneCalendarToAnother(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, c *clock) {
		day, month := calendarLimit(10, Day, "UTC"), calendarLimit(10, Month, "UTC")
		c.ms.Store(at("2030-05-20 12:00:00").UnixMilli())
		expect(t, "in a day", mustTake(t, s, hitOf(1, day, 7))[0], true, 3)
		refusal(t, "in a month", mustTake(t, s, hitOf(1, month, 4))[0], (11*24+12)*time.Hour, false)
		c.advance(24 * time.Hour)
		expect(t, "it counts for the month", mustTake(t, s, hitOf(1, month, 1))[0], true, 2)
		refusal(t, "in a day again", mustTake(t, s, hitOf(1, day, 4))[0], 12*time.Hour, false)
		c.advance(12 * time.Hour)
		expect(t, "the next day", mustTake(t, s, hitOf(1, day, 10))[0], true, 0)
	})
}

func TestAClockThatStepsBackStaysInTheCountedCalendarWindow(t *testing.T) { // D69
	overStores(t, func(t *testing.T, s Store, c *clock) {
		day := calendarLimit(10, Day, "UTC")
		c.ms.Store(at("2030-05-20 00:00:01").UnixMilli())
		mustTake(t, s, hitOf(1, day, 10))
		c.advance(-2 * time.Second)
		refusal(t, "two seconds back", mustTake(t, s, hitOf(1, day, 1))[0], 24*time.Hour+time.Second, false)
		c.advance(-48 * time.Hour)
		expect(t, "two days back", mustTake(t, s, hitOf(1, day, 1))[0], true, 9)
	})
}

// TestADaemonWhoseClockIsWrongAsksForTheRightWindow has Redis's clock ten days from the daemon's.
func TestADaemonWhoseClockIsWrongAsksForTheRightWindow(t *testing.T) {
	c := newClock()
	c.ms.Store(time.Now().Add(-10 * 24 * time.Hour).UnixMilli())
	s := newRedisStore(t, harness.Redis(t).URL, c)
	l := calendarLimit(2, Day, "UTC")
	for i, remaining := range []uint32{1, 0, 0} {
		expect(t, "a take", mustTake(t, s, hitOf(1, l, 1), hitOf(2, limitOf(SlidingLog, 9, time.Minute), 1))[0], i < 2, remaining)
	}
	_, end := l.Calendar.Around(c.time())
	if d := mustTake(t, s, hitOf(1, l, 1))[0]; d.RetryAfter != end.Sub(c.time()) {
		t.Errorf("a wait of %v, the window ends in %v", d.RetryAfter, end.Sub(c.time()))
	}
	expect(t, "the rule beside, spent twice", mustTake(t, s, hitOf(2, limitOf(SlidingLog, 9, time.Minute), 0))[0], true, 7)
}

// D69, D92
func TestAClockThatStepsBackIntoAnotherCalendarWaitsForThatOnesBoundary(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, c *clock) {
		week, day := calendarLimit(10, Week, "UTC"), calendarLimit(10, Day, "UTC")
		c.ms.Store(at("2030-05-20 00:00:01").UnixMilli()) // a Monday
		mustTake(t, s, hitOf(1, week, 10))
		c.advance(-2 * time.Second)
		refusal(t, "two seconds back", mustTake(t, s, hitOf(1, day, 1))[0], 24*time.Hour+time.Second, false)
		c.advance(24*time.Hour + time.Second)
		expect(t, "the next day", mustTake(t, s, hitOf(1, day, 1))[0], true, 9)
	})
}

// TestAClockThatStepsBackIsAskedAgain has the counted window behind those that the daemon knows of.
func TestAClockThatStepsBackIsAskedAgain(t *testing.T) {
	c, l := newClock(), calendarLimit(2, Day, "UTC")
	s := newRedisStore(t, harness.Redis(t).URL, c)
	_, midnight := l.Calendar.Around(time.Now().Add(24 * time.Hour))
	c.ms.Store(midnight.UnixMilli())
	expect(t, "a take", mustTake(t, s, hitOf(1, l, 1))[0], true, 1)
	c.advance(-time.Second)
	expect(t, "a second back", mustTake(t, s, hitOf(1, l, 1))[0], true, 0)
	refusal(t, "a third", mustTake(t, s, hitOf(1, l, 1))[0], 24*time.Hour+time.Second, false)
}
