package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// mostOutcomes is how many outcomes are kept: a page that is still open shows its own.
const mostOutcomes = 64

// longestCommand is how long a command may take: a rollout waits until its sources are quiet.
const longestCommand = 10 * time.Minute

// longestForm bounds what a form sends.
const longestForm = 16 << 10

// outcomes keeps how actions went, for the pages that show it.
type outcomes struct {
	mu    sync.Mutex
	next  int
	known map[string]*answer
}

// add keeps an answer and names it.
func (o *outcomes) add(one *answer) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]*answer{}
	}
	o.next++
	name := strconv.Itoa(o.next)
	o.known[name] = one
	delete(o.known, strconv.Itoa(o.next-mostOutcomes))
	return name
}

// of is the answer that a page's address names, if it is about the page's object.
func (o *outcomes) of(query url.Values, namespace, target string) *answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if one := o.known[query.Get("said")]; one != nil && one.Namespace == namespace && one.Target == target {
		return one
	}
	return nil
}

// requested is a confirmed action.
type requested struct {
	action

	reason string
	// address is the page that it was asked on.
	address string
}

// scopeError is the error about a namespace that the pages don't show.
type scopeError string

func (e scopeError) Error() string { return string(e) }

func newScopeError(within, namespace string, s shell) error {
	return scopeError("These pages show only namespace " + within + ". To see this one, run: " +
		s.lockstep(append([]string{"ui", "-n", namespace}, s.own()...)...) + " (or -A instead of -n for all namespaces)")
}

// requestedIn reads a confirmed action. It is the command that the page has shown.
func requestedIn(form url.Values, kinds []kube.Kind, within string, s shell) (requested, error) {
	namespace, target := form.Get("namespace"), form.Get("target")
	called, name, _ := strings.Cut(target, "/")
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		return requested{}, fmt.Errorf("namespace %q: %s", namespace, wrong[0])
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return requested{}, fmt.Errorf("%q: want KIND/NAME: %s", target, wrong[0])
	}
	if within != "" && within != namespace {
		return requested{}, newScopeError(within, namespace, s)
	}
	var actions []action
	r := requested{reason: cleanReason(form.Get("reason")), address: sourceAddress(namespace, target)}
	if _, err := input.ParseSource(target); err == nil {
		actions = sourceActions(namespace, target)
	} else {
		kind, known := kube.FindKind(kinds, called)
		if !known || kind.Name() != called {
			return requested{}, fmt.Errorf("%q: unknown kind", target)
		}
		actions, r.address = workloadActions(kind, namespace, target, s), workloadAddress(namespace, target)
	}
	at := slices.IndexFunc(actions, func(a action) bool { return a.Verb == form.Get("verb") })
	if at < 0 {
		return requested{}, fmt.Errorf("unknown action %q", form.Get("verb"))
	}
	r.action = actions[at]
	r.Overwrite = r.Verb == verbHold && form.Has("overwrite")
	if problem := reasonProblem(r.reason); problem != "" {
		return requested{}, errors.New(problem)
	}
	return r, nil
}

// carryOut runs the command.
func (r *requested) carryOut(ctx context.Context, s shell, run func(context.Context, []string) (string, error)) *answer {
	ctx, cancel := context.WithTimeout(ctx, longestCommand)
	defer cancel()
	arguments := r.arguments(r.reason)
	one := &answer{asked: asked{r.Verb, r.reason}, Target: r.Target, Namespace: r.Namespace, Command: s.lockstep(arguments...)}
	output, err := run(ctx, arguments)
	one.Output = output
	if err != nil {
		one.Problem = err.Error()
	}
	return one
}

// do runs what the user confirmed, and leads back to the page, which shows the outcome. The guard
// has checked where the form comes from.
func (s *Server) do(w http.ResponseWriter, r *http.Request) {
	if s.options.ReadOnly {
		refuse(w, http.StatusForbidden, "These pages are read-only: run the command yourself.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "The form can't be read: "+err.Error())
		return
	}
	kinds := s.kindsFor(r.Context(), r.PostForm.Get("target"))
	asked, err := requestedIn(r.PostForm, kinds, s.options.Scope.Namespace, s.shell())
	switch {
	case errors.As(err, new(scopeError)):
		refuse(w, http.StatusForbidden, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	name := s.outcomes.add(asked.carryOut(r.Context(), s.shell(), s.options.Do))
	http.Redirect(w, r, asked.address+"?said="+name, http.StatusSeeOther)
}

// actions are what a page offers, without the actions themselves.
func (s *Server) actions(r *request, namespace, target, address string) actionsView {
	return actionsView{
		ReadOnly: s.options.ReadOnly, Shell: s.shell(), Address: address,
		Asked: askedIn(r.query), Answer: s.outcomes.of(r.query, namespace, target),
	}
}

// shell is how the user types commands.
func (s *Server) shell() shell {
	return shell{program: s.options.Program, installed: s.options.Reader.Own}
}

// covers reports whether the pages are about a namespace.
func (s *Server) covers(namespace string) bool {
	return s.options.Scope.Namespace == "" || s.options.Scope.Namespace == namespace
}

// kindNamed is the kind of workload in an address.
func (s *Server) kindNamed(ctx context.Context, called string) (kube.Kind, bool) {
	return kube.FindKind(s.kindsFor(ctx, called), called)
}

// kindsFor are the kinds among which a workload's kind is found. Only one that isn't known here
// makes it necessary to read those of the controller.
func (s *Server) kindsFor(ctx context.Context, target string) []kube.Kind {
	reader := s.options.Reader
	called, _, _ := strings.Cut(target, "/")
	if _, known := kube.FindKind(reader.Kinds, called); known || reader.Client == nil {
		return reader.Kinds
	}
	return reader.InstalledKinds(ctx)
}
