package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// rollouts checks the number of the Deployment's rollouts since the start of the story.
func (s *story) rollouts(ctx context.Context, want int, meaning string) error {
	got, evidence, err := s.countRollouts(ctx)
	if err != nil {
		return err
	}
	if got != want && s.gated {
		evidence += "; a reloader of your cluster that follows every namespace could be the cause"
	}
	if got != want {
		return fmt.Errorf("%d rollouts by the API server's count, want %d (%s; %s)", got, want, meaning, evidence)
	}
	s.good(meaning + " (" + evidence + ")")
	return nil
}

// rolloutsSoFar is the number of rollouts of the Deployment since it was created.
func (st *stage) rolloutsSoFar(ctx context.Context) (int, error) {
	count, _, err := st.countRollouts(ctx)
	return count, err
}

// countRollouts counts them, and describes what it counted. The first revision came with the
// Deployment; every further one is a rollout.
func (st *stage) countRollouts(ctx context.Context) (count int, evidence string, err error) {
	revisions, err := st.revisions(ctx)
	if err != nil {
		return 0, "", err
	}
	what := "ReplicaSets of the Deployment"
	if st.templates != nil {
		what = "pod templates that the Deployment has had"
	}
	return len(revisions) - 1, fmt.Sprintf("%s: %d", what, len(revisions)), nil
}

// showRevisions prints the Deployment's revisions and the versions delivered to each.
func (s *story) showRevisions(ctx context.Context) error {
	revisions, err := s.revisions(ctx)
	if err != nil {
		return err
	}
	for _, r := range revisions {
		given := r.inputs
		if given == "" {
			given = "(as it was deployed)"
		}
		s.show(fmt.Sprintf("revision %d  %s  %s", r.number, r.name, strings.ReplaceAll(given, ",", "  ")))
	}
	return nil
}

// carrier is the object that shows a revision's delivered versions.
func (st *stage) carrier() string {
	if st.templates != nil {
		return "Each pod template"
	}
	return "Each ReplicaSet"
}

// application is the Deployment's current state.
func (st *stage) application(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := st.client.Get(ctx, client.ObjectKey{Namespace: st.namespace, Name: deployment}, d); err != nil {
		return nil, fmt.Errorf("get the Deployment: %w", err)
	}
	return d, nil
}

// revision is one ReplicaSet of the Deployment, or the template that would have become one.
type revision struct {
	number int
	name   string
	// inputs are the versions that its template shows.
	inputs string
}

// revisions lists the Deployment's revisions, oldest first.
func (st *stage) revisions(ctx context.Context) ([]revision, error) {
	if st.templates != nil {
		now, err := st.application(ctx)
		if err != nil {
			return nil, err
		}
		return st.templates.revisions(ctx, now)
	}
	list := &appsv1.ReplicaSetList{}
	if err := st.client.List(ctx, list, client.InNamespace(st.namespace)); err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	var found []revision
	for i := range list.Items {
		rs := &list.Items[i]
		if owner := metav1.GetControllerOf(rs); owner == nil || owner.Name != deployment {
			continue
		}
		number, err := strconv.Atoi(rs.Annotations["deployment.kubernetes.io/revision"])
		if err != nil {
			return nil, fmt.Errorf("read the revision of ReplicaSet %s: %w", rs.Name, err)
		}
		found = append(found, revision{number, rs.Name, rs.Spec.Template.Annotations[settings.Inputs]})
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// settled waits until the Deployment controller, if there is one, has acted on the current
// Deployment; after that, its ReplicaSets are complete.
func (st *stage) settled(ctx context.Context) error {
	if st.templates != nil {
		return nil
	}
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		d, err := st.application(ctx)
		if err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation, "the Deployment controller has not seen the Deployment's latest generation"
	})
}
