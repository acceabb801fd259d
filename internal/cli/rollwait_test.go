package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// rolling is a namespace with the application and an installation's key, and a user who rolls it out.
type rolling struct{ *testkit.World }

func newRolling(t *testing.T, spec string) *rolling {
	t.Helper()
	return newRollingIn(t, testkit.NewWorld(t), spec)
}

func newRollingIn(t *testing.T, w *testkit.World, spec string) *rolling {
	t.Helper()
	w.CreateApp(t)
	w.Create(t, testkit.Secret("lockstep-installation-key", "key", strings.Repeat("k", 32)))
	// Nobody schedules its pods, so they never become ready.
	w.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":{"template":{"spec":{"schedulerName":"nobody"}}}}`)
	if spec != "" {
		w.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":`+spec+`}`)
	}
	return &rolling{w}
}

// run is "lockstep roll deployment/web --now". see gets each text on standard error.
func (r *rolling) run(ctx context.Context, see func(string), args ...string) (stdout, stderr string, code int) {
	var out strings.Builder
	errs := &watched{see: see}
	code = Run(ctx, append([]string{"roll", "deploy/web", "--now", "-n", r.Namespace, "--controller-namespace", r.Namespace, "--kubeconfig", r.Cluster.Kubeconfig()}, args...),
		Environment{Stdout: &out, Stderr: errs, Lookup: variables(nil), Now: time.Now})
	return out.String(), errs.text(), code
}

// watched is a writer that shows what is written.
type watched struct {
	mu  sync.Mutex
	all strings.Builder
	see func(string)
}

func (w *watched) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.see != nil {
		w.see(string(text))
	}
	return w.all.Write(text)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// TestRollDryRun: it says what would be rolled out, doesn't wait, and writes nothing.
func TestRollDryRun(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "")
	before := r.Deployment(t, testkit.Web)
	stdout, stderr, code := r.run(t.Context(), nil, "--dry-run", "--now=false", "--quiet", "24h", "--wait", "--reason", "only to see")
	if code != 0 || !strings.Contains(stdout, "would be rolled out: configmap/app") || !strings.Contains(stdout, "nothing was changed") || strings.Contains(stderr, "waiting") {
		t.Errorf("exit code %d, said %q and %q", code, stdout, stderr)
	}
	if after := r.Deployment(t, testkit.Web); after.Generation != before.Generation {
		t.Errorf("the Deployment was changed: %v", after)
	}
}

// TestRollDryRunSaysWhatStops: a new template of a paused workload, or one that rolls by hand, reaches pods only when a
// user acts.
func TestRollDryRunSaysWhatStops(t *testing.T) {
	t.Parallel()
	r := newRolling(t, `{"paused":true}`)
	if stdout, stderr, code := r.run(t.Context(), nil, "--dry-run"); code != 0 || !strings.Contains(stdout, "; it is paused (spec.paused), and its rollout would begin when you resume it (dry run: nothing was changed)\n") {
		t.Errorf("exit code %d, said %q and %q", code, stdout, stderr)
	}
	shown := input.Shown{input.ConfigMap("app"): input.Tracked("0123456789")}
	for want, rollout := range map[string]health.Status{
		"would be rolled out: configmap/app": {},
		"would get a new pod template: configmap/app~0123456789; pods load it only after they are deleted (updateStrategy OnDelete)": {OnDelete: true},
	} {
		if got := wouldRoll(rollout, shown); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %q, want %q", rollout, got, want)
		}
	}
}

// TestRollWaitsForOthers: if there is nothing to roll out, the rollout in progress is waited for, and a workload that only
// a user can continue isn't.
func TestRollWaitsForOthers(t *testing.T) {
	t.Parallel()
	r := newRolling(t, `{"replicas":1,"progressDeadlineSeconds":600}`)
	if stdout, stderr, code := r.run(t.Context(), nil); code != 0 {
		t.Fatalf("exit code %d, said %q and %q", code, stdout, stderr)
	}
	stdout, stderr, code := r.run(t.Context(), nil, "--wait", "--timeout=1ns")
	if code != 1 || !strings.Contains(stdout, "shows these versions already") || !strings.Contains(stderr, ": the rollout is not done after 1ns (") {
		t.Errorf("in progress: exit code %d, said %q and %q", code, stdout, stderr)
	}
	r.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":{"paused":true}}`)
	stdout, stderr, code = r.run(t.Context(), nil, "--wait", "--timeout=0")
	if code != 0 || !strings.Contains(stderr, ": it is paused (spec.paused)\n") {
		t.Errorf("paused: exit code %d, said %q and %q", code, stdout, stderr)
	}
}

// TestRollWaits until the Deployment controller has carried it out, or given up.
func TestRollWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, flag, want string
		code             int
	}{
		"Done":    {"{}", "--timeout=0", "deployment/web: the rollout is done: 0 pods available\n", 0},
		"Failed":  {`{"replicas":1,"progressDeadlineSeconds":1}`, "--timeout=0", "deployment/web: the rollout failed: it exceeded its progress deadline (ProgressDeadlineExceeded)\n", 1},
		"Timeout": {`{"replicas":1}`, "--timeout=1ns", ": the rollout is not done after 1ns (", 1},
		"Wrong":   {"{}", "--timeout=-1s", "--timeout -1s: must not be negative", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRolling(t, c.spec)
			stdout, stderr, code := r.run(t.Context(), nil, "--wait", c.flag)
			want := strings.Replace(c.want, "deployment/web:", "deployment/web in namespace "+r.Namespace+":", 1)
			if code != c.code || !strings.Contains(stdout+stderr, want) || code != 2 && !strings.Contains(stdout, " rolled out: configmap/app") {
				t.Errorf("exit code %d, said %q and %q, want %d and %q", code, stdout, stderr, c.code, want)
			}
		})
	}
}

// TestRollWaitEnds: Ctrl-C ends the command and not the rollout; a change of the template ends the
// rollout that is waited for.
func TestRollWaitEnds(t *testing.T) {
	t.Parallel()
	const progress = "1 pod not available"
	t.Run("Interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r := newRolling(t, `{"replicas":1}`)
		_, stderr, code := r.run(ctx, func(text string) {
			if strings.Contains(text, progress) {
				stop()
			}
		}, "--wait")
		if code != 1 || !strings.HasSuffix(stderr, "Error: interrupted; the rollout of deployment/web in namespace "+r.Namespace+" continues\n") {
			t.Errorf("exit code %d, said %q", code, stderr)
		}
	})
	t.Run("Replaced", func(t *testing.T) {
		t.Parallel()
		r, once := newRolling(t, `{"replicas":1}`), sync.Once{}
		_, stderr, code := r.run(t.Context(), func(text string) {
			if strings.Contains(text, progress) {
				once.Do(func() {
					r.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":{"template":{"metadata":{"annotations":{"edited":"once"}}}}}`)
				})
			}
		}, "--wait")
		if code != 1 || !strings.HasSuffix(stderr, "Error: deployment/web in namespace "+r.Namespace+": the rollout was replaced: its pod template has changed\n") {
			t.Errorf("exit code %d, said %q", code, stderr)
		}
	})
}

// TestRollWaitSurvivesARestart of the API server: the command reports that it can't read the progress, and goes on waiting.
func TestRollWaitSurvivesARestart(t *testing.T) {
	t.Parallel()
	apiServer := labtest.Private(t, labtest.Options{})
	r, stopped, started := newRollingIn(t, testkit.NewWorldOn(t, apiServer), `{"replicas":1}`), sync.Once{}, sync.Once{}
	stdout, stderr, code := r.run(t.Context(), func(text string) {
		switch {
		case strings.Contains(text, unreadProgress):
			started.Do(func() {
				if err := apiServer.StartAPIServer(t.Context()); err != nil {
					t.Error(err)
					return
				}
				r.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":{"replicas":0}}`)
			})
		case strings.Contains(text, "1 pod not available"):
			stopped.Do(func() {
				if err := apiServer.StopAPIServer(); err != nil {
					t.Error(err)
				}
			})
		}
	}, "--wait", "--timeout=0")
	if code != 0 || strings.Count(stderr, unreadProgress) != 1 || !strings.HasSuffix(stdout, ": the rollout is done: 0 pods available\n") {
		t.Errorf("exit code %d, said %q and %q", code, stdout, stderr)
	}
}

// failing is an API server whose answer to every read is an error.
type failing struct{ err error }

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func (f failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }

// TestRollWaitErrors: an error that may pass doesn't end a wait, and one that stays does.
func TestRollWaitErrors(t *testing.T) {
	t.Parallel()
	resource := appsv1.Resource("deployments")
	get := func(err error) error { return &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: err} }
	refused := get(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	plugin := get(errors.New("getting credentials: exec: executable login failed with exit code 1"))
	alert := get(&net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")})
	untrusted := get(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	forbidden := apierrors.NewForbidden(resource, "web", errors.New("no"))
	for name, c := range map[string]struct {
		reason string
		// errs are the results of reads, one every so often.
		every time.Duration
		errs  []error
		says  string // the end of the wait, empty if it goes on
	}{
		"Down":        {"nothing listens", time.Second, []error{refused, refused}, ""},
		"Cut":         {"the connection ends in the middle of the answer", time.Second, []error{fmt.Errorf("read the body: %w", io.ErrUnexpectedEOF)}, ""},
		"Busy":        {"429", time.Second, []error{apierrors.NewTooManyRequests("later", 1)}, ""},
		"Starting":    {"503", time.Second, []error{apierrors.NewServiceUnavailable("starting")}, ""},
		"Internal":    {"500, for example from etcd's election", time.Second, []error{apierrors.NewInternalError(errors.New("no leader"))}, ""},
		"Hangs":       {"a read has a limit of its own", time.Second, []error{context.DeadlineExceeded}, ""},
		"Forbidden":   {"the permission is missing", time.Second, []error{forbidden}, "is forbidden: no; the rollout continues"},
		"Forgotten":   {"the API server has just started and doesn't know the roles", time.Second, []error{refused, forbidden, forbidden}, ""},
		"Revoked":     {"it has started, and still refuses", startsWithin, []error{refused, forbidden}, "is forbidden: no; the rollout continues"},
		"Gone":        {"the workload was deleted", time.Second, []error{apierrors.NewNotFound(resource, "web")}, "was deleted during its rollout"},
		"NotLoggedIn": {"the credentials ended", time.Second, []error{apierrors.NewUnauthorized("no")}, "no; the rollout continues"},
		"Slow":        {"the client's own limit", time.Second, []error{get(context.DeadlineExceeded)}, ""},
		"Closed":      {"the connection ends before the answer", startsWithin, []error{get(io.EOF), get(io.EOF)}, ""},
		"NoPlugin":    {"the credential plugin fails, and goes on failing", startsWithin, []error{plugin, plugin}, "failed with exit code 1; the rollout continues"},
		"Plugin":      {"the credential plugin failed once", startsWithin - 1, []error{plugin, plugin}, ""},
		"PluginLater": {"an outage that is known doesn't excuse it for longer", startsWithin, []error{refused, plugin}, "failed with exit code 1; the rollout continues"},
		"Rejected":    {"the API server, or a proxy before it, rejects the client's certificate", startsWithin, []error{alert, alert}, "tls: expired certificate; the rollout continues"},
		"Untrusted":   {"somebody else answers", time.Second, []error{untrusted}, "signed by unknown authority; the rollout continues"},
		"NoKind":      {"the kind was deleted", time.Second, []error{&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}}}, `no matches for kind "Rollout" in group "argoproj.io"; the rollout continues`},
		"NotAnObject": {"the answer can't be read, and goes on so", startsWithin, []error{errors.New("couldn't decode"), errors.New("couldn't decode")}, "couldn't decode; the rollout continues"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, stderr := time.Now(), &strings.Builder{}
			w := &waiting{target: workloadTarget(kube.Deployment(), client.ObjectKey{Namespace: "shop", Name: "web"}), env: Environment{Stderr: stderr, Now: func() time.Time { return now }}}
			for i, result := range c.errs {
				w.client = failing{result}
				done, err := w.look(t.Context())
				ends := c.says != "" && i == len(c.errs)-1
				if done || (err != nil) != ends || ends && !strings.HasSuffix(err.Error(), c.says) {
					t.Errorf("%s: after read %d: %t, %v", c.reason, i+1, done, err)
				}
				now = now.Add(c.every)
			}
			if reports := strings.Count(stderr.String(), unreadProgress); c.says == "" && reports != 1 {
				t.Errorf("%s: it is reported %d times: %s", c.reason, reports, stderr)
			}
		})
	}
}

// TestRollNamesTheWorkload as every other command does.
func TestRollNamesTheWorkload(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "")
	if stdout, stderr, code := r.run(t.Context(), nil); code != 0 || !strings.HasPrefix(stdout, "deployment/web in namespace "+r.Namespace+" rolled out: ") {
		t.Errorf("exit code %d, said %q and %q", code, stdout, stderr)
	}
}
