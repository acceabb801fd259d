package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// TestNeeds: an action needs what its command needs.
func TestNeeds(t *testing.T) {
	t.Parallel()
	e := waitingWeb()
	e.Settings = []ask.Setting{{Key: settings.Reload, Value: "secret/db-*", On: "workload"}}
	e.Inputs = append(e.Inputs, ask.Use{InputStatus: ask.InputStatus{Input: "secret/db-1"}})
	own := ask.Own{Namespace: "lockstep-system", Key: "lockstep-installation-key"}
	want := []string{
		"get deployments.apps/web in shop", "patch deployments.apps/web in shop", "get configmaps/app in shop", "get secrets/db-1 in shop",
		"list secrets in shop", "get secrets/lockstep-installation-key in lockstep-system",
	}
	if got := names(toRoll(kube.Deployment(), &e, own)); !slices.Equal(got, want) {
		t.Errorf("roll needs %q, want %q", got, want)
	}
	if custom := access.ToKind(customKind(t), access.Permission{}); custom.Kind.Kind != "StatefulSet" {
		t.Errorf("the resource of a custom kind is a guess: %+v", custom)
	}
	for i := range 500 {
		e.Inputs = append(e.Inputs, ask.Use{InputStatus: ask.InputStatus{Input: fmt.Sprintf("configmap/c%d", i)}})
	}
	if n := len(toRoll(kube.Deployment(), &e, own)); n > mostAsked+2 {
		t.Errorf("%d permissions are asked for", n)
	}
}

func names(all []access.Permission) []string {
	var list []string
	for _, p := range all {
		list = append(list, p.String())
	}
	return list
}

// TestGrantsAreKept: the API server isn't asked at each render, and is asked again after a while.
func TestGrantsAreKept(t *testing.T) {
	t.Parallel()
	now, asked, answer := noon(), 0, error(nil)
	g := newGrants(func(_ context.Context, needed []access.Permission) ([]access.Permission, error) {
		asked++
		return needed[1:], answer
	}, func() time.Time { return now })
	actions := workloadActions(kube.Deployment(), "shop", "deployment/web", shell{})[:2]
	needs := func(*action) []access.Permission {
		return onObject(access.ToKind(kube.Deployment(), access.Permission{}), "shop", "web")
	}
	check := func() { g.check(t.Context(), actions, needs) }
	check()
	now = now.Add(grantAge - 1)
	check()
	if asked != 1 || !slices.Equal(names(actions[1].Missing), []string{"patch deployments.apps/web in shop"}) {
		t.Errorf("asked %d times, want once; missing is %v", asked, actions[1].Missing)
	}
	now, answer = now.Add(1), errors.New("no answer")
	check()
	if asked != 2 || actions[0].Unchecked != "no answer" {
		t.Errorf("asked %d times, want twice; %+v", asked, actions[0])
	}
	for i := range mostGrants + 10 {
		_, _ = g.missing(t.Context(), onObject(access.ToKind(kube.Deployment(), access.Permission{}), "shop", fmt.Sprint("w", i)))
	}
	if len(g.known) > mostGrants {
		t.Errorf("%d answers are kept", len(g.known))
	}
}

// TestReasonIsLost: without the permission to create events, release and roll stay, and say before
// the confirmation that the reason is lost. A hold has it in its annotation.
func TestReasonIsLost(t *testing.T) {
	t.Parallel()
	g := newGrants(func(_ context.Context, needed []access.Permission) ([]access.Permission, error) {
		return slices.DeleteFunc(slices.Clone(needed), func(p access.Permission) bool { return p.Resource.Resource != "events" }), nil
	}, noon)
	v := &actionsView{All: workloadActions(kube.Deployment(), "shop", "deployment/web", shell{}), Address: "/workload/shop/deployment/web"}
	g.check(t.Context(), v.All, func(*action) []access.Permission {
		return onObject(access.ToKind(kube.Deployment(), access.Permission{}), "shop", "web")
	})
	const lost = "Your reason can&#39;t be recorded: you lack permission to create events in shop."
	for i, verb := range []string{verbHold, verbRelease, verbRoll} {
		v.Asked = &asked{Verb: verb, Reason: "because"}
		for where, html := range map[string]node{"form": v.form(v.All[i]), "confirmation": confirmation(v)} {
			if got := strings.Contains(string(html), lost); got != (verb != verbHold) || !strings.Contains(string(html), "<button") {
				t.Errorf("the %s of %s says so: %t: %s", where, verb, got, html)
			}
		}
	}
}
