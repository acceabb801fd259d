package retryafter_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

func TestOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	for text, c := range map[string]struct {
		reason string
		want   time.Duration
		is     bool
	}{
		"":                                 {"no advice", 0, false},
		"30":                               {"seconds", 30 * time.Second, true},
		"0":                                {"at once", 0, true},
		"2147483647":                       {"the longest number of seconds is limited", time.Hour, true},
		"99999999999":                      {"a number that overflows isn't advice", 0, false},
		"-1":                               {"neither is a negative one", 0, false},
		"1.5":                              {"nor a fraction", 0, false},
		"soon":                             {"nor a word", 0, false},
		"Sun, 15 Nov 2026 03:00:30 GMT":    {"a date", 30 * time.Second, true},
		"Sunday, 15-Nov-26 03:00:30 GMT":   {"in the form of RFC 850", 30 * time.Second, true},
		"Sun Nov 15 03:00:30 2026":         {"in the form of C", 30 * time.Second, true},
		"Sun, 15 Nov 2026 02:00:00 GMT":    {"a date in the past", 0, true},
		"Mon, 15 Nov 2027 03:00:00 GMT":    {"a distant date is limited", time.Hour, true},
		"Sun, 15 Nov 2026 03:00:30 +0000":  {"HTTP dates are in GMT", 0, false},
		"Sun, 15 Nov 2026 03:00:30 GMT, x": {"not a date", 0, false},
	} {
		got, is := retryafter.Of(http.Header{"Retry-After": {text}}, now, time.Hour)
		if got != c.want || is != c.is {
			t.Errorf("%s: %q is %s, %t, want %s, %t", c.reason, text, got, is, c.want, c.is)
		}
	}
}

// TestInSeconds: a date becomes seconds, and everything else stays, even if clients were wrapped twice.
func TestInSeconds(t *testing.T) {
	t.Parallel()
	for advice, want := range map[string]*regexp.Regexp{
		"":     regexp.MustCompile("^$"),
		"7":    regexp.MustCompile("^7$"),
		"soon": regexp.MustCompile("^soon$"),
		time.Now().Add(20 * time.Minute).UTC().Format(http.TimeFormat): regexp.MustCompile("^1[12]..$"),
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", advice)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		client := http.Client{Transport: retryafter.InSeconds(retryafter.InSeconds(http.DefaultTransport))}
		response, err := client.Get(server.URL)
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Retry-After"); !want.MatchString(got) {
			t.Errorf("%q is passed on as %q, want %s", advice, got, want)
		}
	}
}
