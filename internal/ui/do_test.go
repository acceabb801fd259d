package ui

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// told answers with the same explanation each time.
type told struct {
	answers

	workload ask.Explanation
	history  error
}

func (a told) Workload(context.Context, kube.Kind, client.ObjectKey) (ask.Explanation, error) {
	return a.workload, nil
}

func (a told) History(context.Context, kube.Kind, client.ObjectKey) (ask.History, error) {
	return ask.History{}, a.history
}

func (a told) Source(_ context.Context, namespace string, id input.ID) (ask.SourceExplanation, error) {
	return ask.SourceExplanation{Namespace: namespace, Source: id.String(), Gone: id.Name == "gone"}, nil
}

// desk is a server without a cluster, and the commands that it ran.
type desk struct {
	*Server

	ran    [][]string
	output string
	err    error
}

func newDesk(change func(*Options)) *desk {
	d := &desk{}
	o := Options{
		Reader: &ask.Reader{Kinds: kube.Kinds(), Now: noon}, Program: "lockstep --context lab",
		Do: func(_ context.Context, arguments []string) (string, error) {
			d.ran = append(d.ran, arguments)
			return d.output, d.err
		},
	}
	if change != nil {
		change(&o)
	}
	d.Server = newServer(o, told{workload: waitingWeb()}, &board{})
	return d
}

// post sends a confirmed form, as the fields verb, target, namespace and reason.
func (d *desk) post(fields ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i, name := range []string{"verb", "target", "namespace", "reason", "overwrite"} {
		if i < len(fields) {
			form.Set(name, fields[i])
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/do", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.do(w, r)
	return w
}

func (d *desk) get(t *testing.T, address string) page {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return d.make(t.Context(), at)
}

// TestDo: what runs is the command that the page has shown, and the page shows how it went.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields []string
		want   []string
	}{
		{[]string{"hold", "deployment/web", "shop", " it's $HOME "}, []string{"hold", "deployment/web", "it's $HOME", "-n", "shop"}},
		{[]string{"hold", "deployment/web", "shop", "again", "true"}, []string{"hold", "deployment/web", "again", "-n", "shop", "--overwrite"}},
		{[]string{"hold", "deployment/web", "shop", "--help"}, []string{"hold", "-n", "shop", "--", "deployment/web", "--help"}},
		{[]string{"hold", "deployment/web", "shop", "deployment/api"}, []string{"hold", "deployment/web", "-n", "shop", "--reason", "deployment/api"}},
		{[]string{"release", "deployment/web", "shop", "done", "true"}, []string{"release", "deployment/web", "-n", "shop", "--reason", "done"}},
		{[]string{"roll", "deployment/web", "shop", "now"}, []string{"roll", "deployment/web", "-n", "shop", "--controller-namespace", "tools", "--reason", "now"}},
		{[]string{"release", "secret/db", "shop", "done"}, []string{"release", "secret/db", "-n", "shop", "--reason", "done"}},
	} {
		d := newDesk(func(o *Options) { o.Reader.Own.Namespace = "tools" })
		d.output, d.err = "what it said", errors.New("why it failed")
		w := d.post(c.fields...)
		if w.Code != http.StatusSeeOther || len(d.ran) != 1 || !slices.Equal(d.ran[0], c.want) {
			t.Errorf("%q: status %d, ran %q, want %q", c.fields, w.Code, d.ran, c.want)
			continue
		}
		back := w.Header().Get("Location")
		kind := "/workload/shop/"
		if strings.HasPrefix(c.fields[1], "secret/") {
			kind = "/source/shop/"
		}
		if want := kind + c.fields[1] + "?said=1"; back != want {
			t.Errorf("%q leads to %s, want %s", c.fields, back, want)
		}
		shows(t, d.get(t, back).body, "why it failed", string(text((shell{program: "lockstep --context lab"}).lockstep(c.want...))))
		lacks(t, d.get(t, "/workload/shop/deployment/web").body, "why it failed")
		lacks(t, d.get(t, "/source/shop/secret/other?said=1").body, "why it failed")
	}
}

// TestTheConfirmedCommandRuns: the form of the page, sent as a browser does, runs the command of
// the page.
func TestTheConfirmedCommandRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(nil)
	e := waitingWeb()
	e.OwnHold = true
	d.answers = told{workload: e}
	page := d.get(t, "/workload/shop/deployment/web?do=hold&reason=-x+%27y")
	shows(t, page.body, string(text(`lockstep hold -n shop --overwrite --context lab -- deployment/web '-x '\''y'`)), `name="overwrite"`)
	d.post("hold", "deployment/web", "shop", "-x 'y", "true")
	if want := []string{"hold", "-n", "shop", "--overwrite", "--", "deployment/web", "-x 'y"}; len(d.ran) != 1 || !slices.Equal(d.ran[0], want) {
		t.Errorf("ran %q, want %q", d.ran, want)
	}
}

// TestDoRefuses: nothing runs without a reason, and nothing but what the pages offer.
func TestDoRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		change func(*Options)
		fields []string
		status int
		says   string
	}{
		{"without a reason", nil, []string{"hold", "deployment/web", "shop", " "}, http.StatusBadRequest, "Enter a reason"},
		{"a reason like a book", nil, []string{"hold", "deployment/web", "shop", strings.Repeat("x", 600)}, http.StatusBadRequest, "too long"},
		{"an unknown verb", nil, []string{"stop", "deployment/web", "shop", "x"}, http.StatusBadRequest, "unknown action"},
		{"no rollout of a source", nil, []string{"roll", "configmap/app", "shop", "x"}, http.StatusBadRequest, "unknown action"},
		{"an unknown kind", nil, []string{"hold", "pod/web", "shop", "x"}, http.StatusBadRequest, "unknown kind"},
		{"no name", nil, []string{"hold", "deployment", "shop", "x"}, http.StatusBadRequest, "KIND/NAME"},
		{"a flag as a name", nil, []string{"hold", "deployment/--all", "shop", "x"}, http.StatusBadRequest, "KIND/NAME"},
		{"a flag as a namespace", nil, []string{"hold", "deployment/web", "-A", "x"}, http.StatusBadRequest, "namespace"},
		{"a namespace that the pages aren't about", func(o *Options) { o.Scope.Namespace = "shop" }, []string{"hold", "deployment/web", "bank", "x"}, http.StatusForbidden, "only namespace shop"},
		{"read-only", func(o *Options) { o.ReadOnly = true }, []string{"hold", "deployment/web", "shop", "x"}, http.StatusForbidden, "read-only"},
	} {
		d := newDesk(c.change)
		w := d.post(c.fields...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || len(d.ran) > 0 {
			t.Errorf("%s: status %d, want %d; ran %q; says %s", c.reason, w.Code, c.status, d.ran, w.Body)
		}
	}
}

// TestOutcomesAreBounded: only the newest are kept.
func TestOutcomesAreBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(nil)
	for range mostOutcomes + 5 {
		d.post("hold", "deployment/web", "shop", "x")
	}
	if len(d.outcomes.known) != mostOutcomes {
		t.Errorf("%d outcomes are kept, want %d", len(d.outcomes.known), mostOutcomes)
	}
}

// TestOtherNamespace: a page outside of the scope says so, and how to see it.
func TestOtherNamespace(t *testing.T) {
	t.Parallel()
	d := newDesk(func(o *Options) { o.Scope.Namespace, o.Reader.Own.Namespace = "shop", "tools" })
	for _, other := range []string{"/workload/bank/deployment/web", "/workload/bank/pod/web", "/source/bank/configmap/app", "/image/bank?ref=registry.example%2Fweb"} {
		p := d.get(t, other)
		if p.status != http.StatusNotFound {
			t.Errorf("%s has status %d", other, p.status)
		}
		shows(t, p.body, "These pages show only namespace shop.", "run: lockstep ui -n bank --controller-namespace tools --context lab (or -A ")
	}
	d.options.Scope.Namespace = ""
	shows(t, d.get(t, "/source/bank/configmap/app").body, "<h1>configmap/app")
}

// TestViews: what the pages need is asked for, and addresses of nothing have no page.
func TestViews(t *testing.T) {
	t.Parallel()
	d := newDesk(func(o *Options) {
		o.Scope.Namespace = "shop"
		o.Can = func(_ context.Context, needed []access.Permission) ([]access.Permission, error) {
			return slices.DeleteFunc(slices.Clone(needed), func(p access.Permission) bool { return p.Resource.Resource != "secrets" }), nil
		}
	})
	d.answers = told{workload: waitingWeb(), history: errors.New("no revisions for you")}
	p := d.get(t, "/workload/shop/deploy/web")
	shows(t, p.body, "revisions cannot be read: no revisions for you", "get secrets/lockstep-installation-key in lockstep-system", `id="action-hold"`)
	lacks(t, p.body, `id="action-roll"`)
	if p.namespace != "shop" || p.title != "deployment/web in namespace shop" {
		t.Errorf("the page is %q in %q", p.title, p.namespace)
	}
	shows(t, d.get(t, "/source/shop/configmap/app").body, "<h1>configmap/app", `id="action-hold"`)
	lacks(t, d.get(t, "/source/shop/configmap/gone").body, `id="action-hold"`, "lockstep hold")
	shows(t, d.get(t, "/source/shop/secret/db").body, "get secrets/db in shop, patch secrets/db in shop")
	for _, other := range []string{"/workload/shop/pod/web", "/source/shop/pod/web", "/nowhere"} {
		if p := d.get(t, other); p.status != http.StatusNotFound || p.title != "No such page" {
			t.Errorf("%s has status %d: %s", other, p.status, p.title)
		}
	}
}
