package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = 2 * time.Minute

func selector(kind filemap.Kind, name, labels string) objectwatch.Selector {
	return objectwatch.Selector{Kind: kind, Namespace: "ns", Name: name, Labels: labels}
}

// Whoever accepts any certificate need not trust the cluster's own authority.
func TestInsecureInACluster(t *testing.T) {
	authority := rest.TLSClientConfig{CAFile: "/ca", CAData: []byte("x")}
	for insecure, want := range map[bool]rest.TLSClientConfig{true: {Insecure: true}, false: authority} {
		config := Kube{Insecure: insecure}.trusting(&rest.Config{TLSClientConfig: authority})
		if diff := cmp.Diff(want, config.TLSClientConfig); diff != "" {
			t.Errorf("insecure %v: %s", insecure, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		why     string
		set     func(*Config)
		wantErr string
	}{
		"directory":           {why: "it is only watched", set: func(c *Config) { c.Directories = []string{"/a"} }},
		"two directories":     {why: "they are only watched", set: func(c *Config) { c.Directories = []string{"/a", "/b"} }},
		"object without root": {why: "it has to go somewhere", set: func(c *Config) { c.Selectors = []objectwatch.Selector{selector("configmap", "app", "")} }, wantErr: "the root directory is missing"},
		"no source":           {why: "there is nothing to do", set: func(c *Config) { c.Volume.Root = "/r" }, wantErr: "no source"},
		"root in its directory": {
			why: "the agent would follow its own files",
			set: func(c *Config) { c.Directories, c.Volume.Root = []string{"/a"}, "/a/out" }, wantErr: "contain one another",
		},
		"directory in its root": {
			why: "the agent would publish into what it follows",
			set: func(c *Config) { c.Directories, c.Volume.Root = []string{"/a/in"}, "/a" }, wantErr: "contain one another",
		},
		"roll-back of a mounted directory": {
			why: "somebody else publishes there",
			set: func(c *Config) { c.Directories, c.Sync.Timing.RollBack = []string{"/a"}, true }, wantErr: "rolling back needs a root",
		},
		"signal without a child": {
			why: "there is nobody to signal",
			set: func(c *Config) { c.Directories, c.App.Notify = []string{"/a"}, []string{"signal:HUP"} }, wantErr: "there is no child to signal",
		},
		"address": {why: "a mistake shows at the start", set: func(c *Config) { c.Directories, c.Health.Value = []string{"/a"}, "8080" }, wantErr: `--health-addr "8080": want host:port or :port`},
	} {
		t.Run(name, func(t *testing.T) {
			config := Default()
			c.set(&config)
			err := config.Validate()
			if (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("%s: error %v, want %q", c.why, err, c.wantErr)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	config := Default()
	config.Selectors = []objectwatch.Selector{selector("configmap", "app", ""), selector("configmap", "", "x=y")}
	config.Volume.Root = "/r"
	want := []podsync.Source{{Name: "configmap/ns/app", Named: true}, {Name: "configmap/ns/[x=y]"}}
	if diff := cmp.Diff(want, config.complete().Sync.Sources); diff != "" {
		t.Error(diff)
	}
	if config.complete().Sync.Keyed {
		t.Error("names of sets are keyed although nothing is secret")
	}
	config.OptionalNames = true
	want[0].Named = false
	if diff := cmp.Diff(want, config.complete().Sync.Sources); diff != "" {
		t.Errorf("with optional names: %s", diff)
	}
	config.Selectors = append(config.Selectors, selector("secret", "db", ""))
	if !config.complete().Sync.Keyed {
		t.Error("names of sets with a Secret are not keyed")
	}
}

// TestNamespacesHaveShares: the size limit is divided by the number of namespaces, if it is known
// and small.
func TestNamespacesHaveShares(t *testing.T) {
	for namespaces, want := range map[string]int64{"a": 0, "a,a": 0, "a,b": 128 << 20, "a,b,a,c,d": 64 << 20, "a,b,c,d,e,f": 64 << 20, "": 64 << 20, "a,": 64 << 20} {
		config := Default()
		for namespace := range strings.SplitSeq(namespaces, ",") {
			config.Selectors = append(config.Selectors, objectwatch.Selector{Kind: "configmap", Namespace: namespace})
		}
		if rules := config.complete().Sync.Rules; rules.Share != want || rules.Shared != (want > 0) {
			t.Errorf("namespaces %q: a share of %s, shared %t", namespaces, filemap.Bytes(rules.Share), rules.Shared)
		}
	}
}

// output is a log that may be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Run in one process: two watched directories with a file of the same name are
// two files, and the end of the context is the end.
func TestRunWatchesDirectories(t *testing.T) {
	told := make(chan struct{}, 100)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told <- struct{}{} }))
	defer app.Close()
	config := Default()
	config.Directories = []string{t.TempDir(), t.TempDir()}
	config.App.Notify, config.Sync.InitialNotify, config.Sync.Timing.Quiet = []string{app.URL}, podsync.NotifyAlways, 0
	for _, dir := range config.Directories {
		write(t, filepath.Join(dir, "a"), "1")
	}
	log := &output{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, slog.New(slog.NewTextHandler(log, nil)), time.Now) }()
	for _, dir := range append([]string{""}, config.Directories...) {
		if dir != "" {
			write(t, filepath.Join(dir, "a"), "2")
		}
		select {
		case <-told:
		case <-time.After(patience):
			t.Fatalf("not told of %q\n%s", dir, log)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

// Two agents in one pod without a port of their own: the second runs without one. A port
// that was asked for and is taken is an error.
func TestAHealthPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for optional, want := range map[bool]string{true: "", false: "listen for probes on " + taken.Addr().String() + ": bind: address already in use; change --health-addr"} {
		config := Default()
		config.Directories, config.Volume.Root, config.Sync.Once = []string{t.TempDir()}, filepath.Join(t.TempDir(), "config"), true
		config.Health.Value, config.HealthOptional = taken.Addr().String(), optional
		write(t, filepath.Join(config.Directories[0], "a"), "1")
		log := &output{}
		err := Run(t.Context(), config, slog.New(slog.NewTextHandler(log, nil)), time.Now)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("optional %v: error %v, want %q", optional, err, want)
		}
		_, missing := os.Stat(filepath.Join(config.Volume.Root, "a"))
		if said := strings.Contains(log.String(), "not serving probes"); said != optional || (missing == nil) != optional {
			t.Errorf("optional %v: the file is there: %v, the log is\n%s", optional, missing == nil, log)
		}
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, name); err != nil {
		t.Fatal(err)
	}
}

// The child ends with the agent, and its code is the agent's.
func TestRunEndsWithItsChild(t *testing.T) {
	config := Default()
	config.Directories, config.Volume.Root = []string{t.TempDir()}, filepath.Join(t.TempDir(), "config")
	write(t, filepath.Join(config.Directories[0], "a"), "1")
	config.Child.Args = []string{"sh", "-c", `test "$(cat ` + config.Volume.Root + `/a)" = 1 && exit 7`}
	err := Run(t.Context(), config, slog.New(slog.DiscardHandler), time.Now)
	if exit, ok := errors.AsType[*podsync.ExitError](err); !ok || exit.Code != 7 {
		t.Errorf("error %v, want the child's code 7", err)
	}
}

// A failure that repeats itself is logged once, until it changes or passes.
func TestFailuresAreLoggedOnce(t *testing.T) {
	log := &output{}
	inventory := podsync.NewInventory(podsync.Options{Sources: []podsync.Source{{Name: "x"}}}, nil, time.Now, func() {})
	l := loud{Inventory: inventory, log: slog.New(slog.NewTextHandler(log, nil))}
	for _, text := range []string{"one", "one", "two", "two", "one"} {
		l.Failed("x", errors.New(text))
	}
	if got := strings.Count(log.String(), "a source cannot be read"); got != 3 {
		t.Errorf("logged %d times\n%s", got, log)
	}
	if got := inventory.Snapshot().Failures["x"]; got != "one" {
		t.Errorf("the inventory says %q", got)
	}
	l.Recovered("x")
	l.Recovered("x")
	if got := strings.Count(log.String(), "a source can be read again"); got != 1 {
		t.Errorf("the recovery is logged %d times\n%s", got, log)
	}
	if failures := inventory.Snapshot().Failures; len(failures) > 0 {
		t.Errorf("the inventory still says %v", failures)
	}
	l.Failed("x", errors.New("one"))
	if got := strings.Count(log.String(), "a source cannot be read"); got != 4 {
		t.Errorf("the second outage is not logged\n%s", log)
	}
}

// A directory that can't be watched is tried again and again, and logged once.
func TestAFailedWatchIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, dir, config := &output{}, filepath.Join(t.TempDir(), "missing"), Default()
		logger := slog.New(slog.NewTextHandler(log, nil))
		inventory := podsync.NewInventory(podsync.Options{Sources: []podsync.Source{{Name: "directory " + dir}}}, nil, time.Now, func() {})
		r := &runner{config: config, log: logger, keeper: volume.HashOnly{}, sink: loud{Inventory: inventory, log: logger}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*config.Poll)
		defer cancel()
		r.followDirectory(ctx, dir)
		if got := strings.Count(log.String(), "watching a directory failed"); got != 1 {
			t.Errorf("logged %d times\n%s", got, log)
		}
	})
}

// A directory that cannot be read shows, and no longer once it can be read
// again, although its files are the same.
func TestADirectoryThatRecovers(t *testing.T) {
	config := Default()
	dir := filepath.Join(t.TempDir(), "source")
	config.Directories, config.Volume.Root = []string{dir}, filepath.Join(t.TempDir(), "config")
	config.Rescan, config.Poll = 10*time.Millisecond, 10*time.Millisecond
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, slog.New(slog.DiscardHandler), time.Now) }()
	wantSource(t, config, "read, degraded is false")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	wantSource(t, config, "cannot be read, degraded is true")
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	wantSource(t, config, "read, degraded is false")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

// wantSource waits for what the status file says of the only source.
func wantSource(t *testing.T, config Config, want string) {
	t.Helper()
	file := filepath.Join(volume.StateDir(config.Volume.Root, config.Volume.Layout), podsync.StatusFile)
	labtest.Eventually(t, patience, func() (bool, string) {
		raw, err := os.ReadFile(file)
		var s podsync.Status
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil || len(s.Sources) != 1 {
			return false, fmt.Sprint(err, s.Sources)
		}
		state := "cannot be read"
		if s.Sources[0].Failure == "" {
			state = s.Sources[0].State
		}
		got := fmt.Sprintf("%s, degraded is %v", state, s.Degraded)
		return got == want, got + ", want " + want
	})
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bin")
	for range 2 { // over an older one as well
		target, err := Install(dir)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(target)
		if err != nil || info.Mode().Perm() != 0o755 || info.Size() == 0 {
			t.Errorf("installed %v (%v)", info, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
}

// Probes are served as long as the agent runs.
func TestProbes(t *testing.T) {
	config := Default()
	config.Directories, config.Volume.Root, config.Health.Value = []string{t.TempDir()}, filepath.Join(t.TempDir(), "config"), "127.0.0.1:0"
	write(t, filepath.Join(config.Directories[0], "a"), "1")
	log := &output{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, slog.New(slog.NewTextHandler(log, nil)), time.Now) }()
	labtest.Eventually(t, patience, func() (bool, string) {
		_, rest, _ := strings.Cut(log.String(), "address=")
		address, _, found := strings.Cut(rest, "\n")
		if !found {
			return false, log.String()
		}
		answer, err := http.Get("http://" + address + "/startupz")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}
