package configmapreload_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/dropin/configmapreload"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

func TestParse(t *testing.T) {
	for _, dashes := range []string{"-", "--"} {
		c, err := configmapreload.Parse([]string{
			dashes + "volume-dir=/etc/config", dashes + "webhook-url", "http://localhost:9090/-/reload", dashes + "webhook-url=http://localhost/two",
			dashes + "webhook-method=PUT", dashes + "webhook-status-code=204", dashes + "webhook-retries=3", dashes + "web.listen-address=:9999", dashes + "web.telemetry-path=/m",
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("the agent refuses it: %v", err)
		}
		if diff := cmp.Diff([]string{"http://localhost:9090/-/reload method=PUT codes=204", "http://localhost/two method=PUT codes=204"}, c.App.Notify); diff != "" {
			t.Error(diff)
		}
		if c.Volume.Root != "" || c.Directories[0] != "/etc/config" || c.Health != (listener.Address{Value: ":9999", Setting: "--web.listen-address"}) || c.App.HTTP.Method != http.MethodPut {
			t.Errorf("configuration %+v", c)
		}
		if c.App.HTTP.Codes.Accept(200) || !c.App.HTTP.Codes.Accept(204) || c.Sync.Timing.MaxFailures != 3 {
			t.Errorf("codes %v, failures %d", c.App.HTTP.Codes, c.Sync.Timing.MaxFailures)
		}
	}
}

// A URL reaches the application as it was written, and only a URL is one: no word of ours in it
// runs a program. The other flags have the original's defaults; redirects aren't followed.
func TestURLs(t *testing.T) {
	c, err := configmapreload.Parse([]string{"-volume-dir=/a", `-webhook-url=HTTP://localhost/a b?q='x'\d"`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the agent refuses it: %v", err)
	}
	if got := application.Address(c.App.Notify[0]); got != `http://localhost/a%20b?q='x'\d"` {
		t.Errorf("the address is %s", got)
	}
	if h := c.App.HTTP; h.FollowOnHost || h.Method != http.MethodPost || h.Codes.Accept(204) || !h.Codes.Accept(200) || c.Health.Value != ":9533" {
		t.Errorf("the defaults are %+v and %s", h, c.Health.Value)
	}
	for _, url := range []string{"exec:touch /tmp/x", "signal:HUP@name:x", "localhost:9090/-/reload"} {
		if _, err := configmapreload.Parse([]string{"-volume-dir=/a", "-webhook-url=" + url}, nil); err == nil || !strings.Contains(err.Error(), "--webhook-url: want http://host:port/path") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

// Several directories are watched together; each call is for all of them.
func TestSeveralDirectories(t *testing.T) {
	c, err := configmapreload.Parse([]string{"-volume-dir=/a", "-volume-dir=/b", "-webhook-url=http://localhost/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the agent refuses it: %v", err)
	}
	if diff := cmp.Diff([]string{"/a", "/b"}, c.Directories); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "--volume-dir is missing",
		"-volume-dir=/a":         "--webhook-url is missing",
		"-volume-dir-archive=/a": "not supported",
		"-webhook-status-code=x": "HTTP codes",
		"-volume-dirs=/a":        "not defined",
	} {
		if _, err := configmapreload.Parse(strings.Fields(args), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v lacks %q", args, err, want)
		}
	}
}
