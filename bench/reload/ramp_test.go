package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The steps are those of the documentation: one workload, then 2, then 4, up to the budget.
func TestHealthyBefore(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int]string{
		20: "0 1 1 3 3 3 3 7 7 7 7 7 7 7 7 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 31 32 33 34",
		4:  "0 1 1 3 3 3 3 4 5 6",
		1:  "0 1 2 3",
	} {
		var got []string
		for n := range strings.Fields(want) {
			got = append(got, fmt.Sprint(healthyBefore(n+1, budget)))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("budget %d (-want +got):\n%s", budget, diff)
		}
	}
}

// In the text, p is a patch and d a status that says done, and each number is how many milliseconds later it came.
func TestSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, moves string
		want          spreadCost
	}{
		"None":    {reason: "nothing was patched"},
		"Steps":   {reason: "1, 2, and one for each that is done", moves: "5000p 700d 30p 5p 600d 100d 50p 10d 20p", want: spreadCost{HealthySeconds: 6.5, Steps: 3, MedianMillis: 80, SlowestMillis: 150, FirstMillis: []float64{30}, MostRolling: 2}},
		"Masked":  {reason: "another one that is done hides nothing: the patch came 300 ms after the one that made room", moves: "0p 0d 0p 0p 0d 0d 0p 0p 0d 200d 100p", want: spreadCost{HealthySeconds: 0.2, Steps: 4, SlowestMillis: 300, FirstMillis: []float64{0}, MostRolling: 2}},
		"Early":   {reason: "two at first", moves: "0p 0p 10d 10d 5p", want: spreadCost{HealthySeconds: 0.02, Steps: 1, MedianMillis: 15, SlowestMillis: 15, MostRolling: 2, Early: 1}},
		"TooMany": {reason: "three at a time", moves: "0p 0d 1p 0p 0p", want: spreadCost{Steps: 1, MedianMillis: 1, SlowestMillis: 1, FirstMillis: []float64{1}, MostRolling: 3, Early: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Unix(1700000000, 0)
			at := began
			var moves []move
			for text := range strings.FieldsSeq(c.moves) {
				var later int
				var what string
				if _, err := fmt.Sscanf(text, "%d%s", &later, &what); err != nil {
					t.Fatal(err)
				}
				at = at.Add(time.Duration(later) * time.Millisecond)
				moves = append(moves, move{at: at, done: what == "d"})
			}
			if diff := cmp.Diff(c.want, spreadOf(began, moves, 2)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestSpreadFaults(t *testing.T) {
	t.Parallel()
	good := spreadCost{MedianMillis: 100, SlowestMillis: 5000, MostRolling: rampBudget}
	if faults := good.faults(); len(faults) > 0 {
		t.Errorf("at the limits: %q", faults)
	}
	bad := spreadCost{MedianMillis: 101, MostRolling: rampBudget + 1, Early: 1}
	if faults := bad.faults(); len(faults) != 3 {
		t.Errorf("%d faults instead of three: %q", len(faults), faults)
	}
}

func TestIsDone(t *testing.T) {
	t.Parallel()
	done := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	if !isDone(&done) {
		t.Error("all pods are available")
	}
	for reason, change := range map[string]func(*appsv1.DeploymentStatus){
		"a status from before":      func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 2 },
		"an old pod is still there": func(s *appsv1.DeploymentStatus) { s.Replicas = 3 },
		"one pod isn't replaced":    func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 },
		"one pod isn't available":   func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 1 },
	} {
		other := done.DeepCopy()
		change(&other.Status)
		if isDone(other) {
			t.Error(reason)
		}
	}
	if isDone(&appsv1.DaemonSet{}) {
		t.Error("only Deployments have steps here")
	}
}
