package docs_test

import (
	"slices"
	"strings"
	"testing"
)

// unplayed is a session that TestPagesRun does not type in.
type unplayed struct {
	// page and begins say which: those of the page whose first command begins so.
	page, begins string
	why          string
	// test does the same in its own way, empty when there is none.
	test string
}

func unplayedSessions() []unplayed {
	const (
		compiles  = "it compiles the programs for two platforms and pushes them, which takes minutes"
		noPods    = "the pods of this control plane run no containers, and the controller here is a process"
		realNode  = "it needs a node that runs containers"
		aPattern  = "NAME and NAMESPACE stand for the reader's own"
		wholePlay = "it takes minutes, and is a test or a target of CI by itself"
		aDoctor   = "it needs the controller in a pod; its names and numbers are examples, and the page says so"
	)
	return []unplayed{
		{"README.md", "git clone", compiles, "TestPush"},
		{"README.md", "helm upgrade", noPods, "TestUpgradesRestartNothing"},
		{"README.md", "make demo", wholePlay, "TestDemoPlaysToTheEnd"},
		{"CONTRIBUTING.md", "make test", wholePlay, ""},
		{"CONTRIBUTING.md", "eval", "it starts a control plane that stays", "TestUpStatusDown"},
		{"charts/lockstep/README.md", "token=", "it needs the policies of an installation, and its token", "TestAdmissionPolicies"},
		{"charts/lockstep/README.md", "kubectl", "it needs the policies of an installation, and its token", "TestAdmissionPolicies"},
		{"docs/start/getting-started.md", "git clone", "it needs the network", ""},
		{"docs/start/getting-started.md", "make push", compiles, "TestPush"},
		{"docs/start/getting-started.md", "helm upgrade", noPods, "TestUpgradesRestartNothing"},
		{"docs/start/getting-started.md", "helm uninstall", noPods, "TestUpgradesRestartNothing"},
		{"docs/start/getting-started.md", "eval", "it starts a control plane that stays", "TestUpStatusDown"},
		{"docs/start/getting-started.md", "kubectl -n NAMESPACE", aPattern, ""},
		{"docs/start/upgrade.md", "make push", compiles, "TestUpgradesRestartNothing"},
		{"docs/start/upgrade.md", "helm rollback", noPods, "TestUpgradesRestartNothing"},
		{"docs/start/upgrade.md", "sha256sum", "it needs a downloaded release", "TestMake"},
		{"docs/contributing/images.md", "make images", compiles, "TestProduct"},
		{"docs/contributing/images.md", "oras discover", "oras is not among the programs of the lab; a test finds the same referrers with a library", "TestPush"},
		{"docs/contributing/releases.md", "make release", compiles, "TestMake"},
		{"docs/contributing/real-node.md", "", realNode, "TestRealNode"},
		{"docs/guides/notifications.md", "lockstep notify test", "it needs a receiver", "TestNotifyTest"},
		{"docs/guides/notifications.md", "kubectl -n lockstep-system create secret", "it needs a receiver, and the controller in a pod", "TestNotifyTest"},
		{"docs/guides/notifications.md", "kubectl annotate namespace", "it needs a namespace that isn't the test's own", "TestNotifications"},
		{"docs/help/doctor.md", "lockstep doctor", aDoctor, "TestDoctor"},
		{"docs/guides/ui.md", "lockstep ui -n shop", "it serves until Ctrl-C, at a free port and with a random token", "TestEntrance"},
		{"docs/guides/ui.md", "lockstep ui --port", "whether the port is in use depends on the machine", "TestPortInUse"},
		{"docs/help/troubleshooting.md", "kubectl -n lockstep-system port-forward", noPods, "TestMissingPermissionsToWrite"},
		{"docs/guides/sync.md", "lockstep-sync status", "it needs Unbound and a set that it refused", "TestUnbound"},
		{"docs/migrate/stakater-reloader.md", "lockstep convert", "the file is the reader's own", "TestConvert"},
		{"docs/migrate/kubernetes-reloader.md", "kubectl logs", noPods, "TestExample"},
		{"docs/migrate/kube-image-deployer.md", "kubectl logs", realNode, "TestRealNode"},
		{"docs/migrate/kube-image-deployer.md", "kube-image-deployer-cli", "it is the entry point of an image", "TestCommand"},
		{"docs/migrate/kube-image-deployer.md", "lockstep images", "it needs the original beside Lockstep", "TestManifestOfTheOriginal"},
	}
}

func (u unplayed) is(f fence) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(f.text, "$ "), "\n")
	return u.page == f.page.path && strings.HasPrefix(first, u.begins)
}

// TestEverySessionIsPlayedOrSaysWhyNot: a session that no test runs is in the list, with the
// reason and, where there is one, the test that does the same in its own way.
func TestEverySessionIsPlayedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	list, tests := unplayedSessions(), declaredTests(t)
	used := map[unplayed]bool{}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/decisions/") { // records of what was tried
			continue
		}
		for _, f := range p.fences("console") {
			switch i := slices.IndexFunc(list, func(u unplayed) bool { return u.is(f) }); {
			case f.isPlayed():
			case i < 0:
				t.Errorf("%s: no test runs this session; mark it, or say in the list why not", f)
			default:
				used[list[i]] = true
			}
		}
	}
	for _, u := range list {
		if !used[u] {
			t.Errorf("%s has no session that begins with %q and is not run", u.page, u.begins)
		}
		if u.test != "" && len(tests.find(mention{name: u.test})) == 0 {
			t.Errorf("%s, %s: there is no %s", u.page, u.begins, u.test)
		}
	}
}
