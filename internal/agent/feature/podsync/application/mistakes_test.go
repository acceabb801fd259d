package application

import (
	"strings"
	"testing"
)

// A typing mistake in a way to tell or to ask is reported without what may be a
// password, and names what it is in.
func TestMistakesShowNoCredentials(t *testing.T) {
	t.Parallel()
	tell := func(spec string) error { _, err := NewNotifier(spec, settings(nil)); return err }
	ask := func(spec string) error { _, err := NewConfirmer(spec, patience, settings(nil)); return err }
	check := func(line string) error { _, err := NewChecker(line, settings(nil)); return err }
	for name, c := range map[string]struct {
		try        func(string) error
		spec, want string
	}{
		"URL":             {tell, `http://admin:hunter2@localhost/ 'x`, "a URL and its options: "},
		"header":          {tell, `http://localhost/ header="Authorization: Bearer hunter2`, "a URL and its options: "},
		"command":         {tell, `exec:curl -u admin:hunter2 'x`, "notify exec: "},
		"script":          {tell, `attempt:curl -u admin:hunter2 'x`, "notify attempt: "},
		"scheme":          {tell, "htp://admin:hunter2@localhost/", `notify "htp:…": `},
		"no scheme":       {tell, "hunter2", "notify (unreadable): "},
		"user alone":      {tell, "hunter2@localhost:80/", "notify (unreadable): "},
		"line":            {tell, "socket::password hunter2", "notify socket: "},
		"question":        {ask, `exec:curl -u admin:hunter2 'x`, "confirm exec: "},
		"question's URL":  {ask, "htps://admin:hunter2@localhost/", `confirm "htps:…": `},
		"metric":          {ask, "metric:x>before@htp://admin:hunter2@localhost/", "confirm metric: "},
		"metric's option": {ask, `metric:x>before@http://localhost/ header="X: hunter2`, "a URL and its options: "},
		"checker":         {check, `check --password=hunter2 \`, "check: "},
	} {
		err := c.try(c.spec)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want %q and no password", name, err, c.want)
		}
	}
	for _, full := range []bool{true, false} {
		if shown := Command(`check --password=hunter2 \`, full); strings.Contains(shown, "hunter2") {
			t.Errorf("described as %s", shown)
		}
	}
}
