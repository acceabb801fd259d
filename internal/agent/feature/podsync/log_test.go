package podsync_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// The log tells what happened in words that mean it, and the status tells the
// size of the set in place, not of one that was rolled back.
func TestLogAndSizeAfterAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, func(o *podsync.Options) { o.Timing.RollBack, o.Timing.MaxFailures = true, 1 })
		put("good")
		synctest.Wait()
		w.notify = func(n int) error {
			if n == 2 {
				return errors.New("the application said no")
			}
			return nil
		}
		put("a longer one that is refused")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantStatus(t, w, podsync.RolledBack, 1, 4)
		put("kept")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.check = func(string) error { return errors.New("exit status 1") }
		put("bad")
		synctest.Wait()
		wantStatus(t, w, podsync.Rejected, 1, 4)
		wantProbe(t, agent, "/healthz", http.StatusOK)
		for _, want := range []string{
			`msg=checked generation=[0-9a-f]+\n`,
			`msg=published generation=[0-9a-f]+ files=1 bytes=4\n`,
			`msg=notified generation=[0-9a-f]+\n`,
			`msg="refused by the application: the application said no" generation=[0-9a-f]+ reason=TooManyFailures failures=1\n`,
			`msg="rolled back" generation=[0-9a-f]+ refused=[0-9a-f]+\n`,
			`msg="refused: exit status 1" generation=[0-9a-f]+ reason=Rejected\n`,
		} {
			if !regexp.MustCompile(want).MatchString(w.log.String()) {
				t.Errorf("the log has no %s:\n%s", want, w.log.String())
			}
		}
		for _, never := range []string{"NotDelivered", "failures=0", "step"} {
			if strings.Contains(w.log.String(), never) {
				t.Errorf("the log says %s:\n%s", never, w.log.String())
			}
		}
	})
}
