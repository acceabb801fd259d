package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

func TestForecast(t *testing.T) {
	plane := []program.Built{
		{Program: program.Program{Name: "etcd", FirstBuild: time.Minute}, Version: "3.6.8"},
		{Program: program.Program{Name: "kube-apiserver", FirstBuild: 5 * time.Minute}, Version: "1.36.3"},
	}
	helm := []program.Built{{Program: program.Program{Name: "helm", FirstBuild: 3 * time.Minute}, Version: "4.3.1"}}
	cases := map[string]struct {
		reason string
		in     preparation
		want   string
	}{
		"bare": {
			reason: "a reader who waits for minutes learns how long, for what, and how to do without",
			in:     preparation{first: plane, later: helm, product: true, cores: 2},
			want: "The first chapter begins in about 8 minutes (2 cores). What is built from source, the first time only:\n" +
				"  6 minutes    etcd 3.6.8 and kube-apiserver 1.36.3\n" +
				"  2 minutes    Lockstep and the demo\n" +
				"  3 minutes    when the last two chapters need them: helm 4.3.1\n" + waysOut,
		},
		"four cores": {
			reason: "more cores, less time",
			in:     preparation{first: plane, cores: 4},
			want: "The first chapter begins in about 3 minutes (4 cores). What is built from source, the first time only:\n" +
				"  3 minutes    etcd 3.6.8 and kube-apiserver 1.36.3\n" + waysOut,
		},
		"downloaded": {
			reason: "who brings the control plane needs no way out of building it",
			in:     preparation{later: helm, shared: 5 * time.Minute, cores: 2},
			want: "The first chapter begins at once. What is built from source, the first time only:\n" +
				"  8 minutes    when the last two chapters need them: helm 4.3.1\n",
		},
		"all there": {reason: "nothing to wait for, nothing to say", in: preparation{cores: 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.in.forecast()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestDemoBuildsInTheOrderOfNeed: only the control plane comes before the first chapter.
func TestDemoBuildsInTheOrderOfNeed(t *testing.T) {
	first, later, err := demoPrograms(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kube-controller-manager"}, first); diff != "" {
		t.Errorf("before the first chapter (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"registry", "kube-scheduler", "kwok", "argo-rollouts", "helm"}, later); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
	t.Setenv(program.DownloadedEnv, t.TempDir())
	if _, stderr, code := lab(t, "demo"); code != 1 || !strings.Contains(stderr, "there is no etcd") {
		t.Errorf("an empty directory: exit code %d, stderr %q, want 1 and what is missing", code, stderr)
	}
}
