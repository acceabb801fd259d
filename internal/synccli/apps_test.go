package synccli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/argv"
	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// The tests in this file run real applications from Debian's packages. Each
// goes from a good configuration to a bad one and back, and looks at the
// application itself, not at the agent.

func port(t *testing.T) string {
	t.Helper()
	_, p, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// get is the body of an answer, or the error's text.
func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}

func wantBody(t *testing.T, a *agent, url, want string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		got := get(url)
		return strings.Contains(got, want), fmt.Sprintf("%s answers %q, want %q\n%s", url, got, want, a.Stderr())
	})
}

// wantRejected waits until the checker refused a set and shows what it printed.
func (a *agent) wantRejected(output string) {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		s := a.status()
		return s.Rejected != "" && strings.Contains(s.CheckOutput, output), fmt.Sprintf("status %+v\n%s", s, a.Stderr())
	})
	a.wantMetric("lockstep_sync_degraded", "1")
	a.wantProbe("/healthz", http.StatusOK)
}

// wantConfirmed waits until the newest observed set is confirmed.
func (a *agent) wantConfirmed() {
	a.t.Helper()
	labtest.Eventually(a.t, patience, func() (bool, string) {
		s := a.status()
		return s.Published == s.Observed && s.Confirmed == s.Published, fmt.Sprintf("status %+v\n%s", s, a.Stderr())
	})
}

func TestPrometheusOverHTTPWithItsOwnMetric(t *testing.T) {
	t.Parallel()
	need(t, "prometheus", "prometheus")
	source := t.TempDir()
	config := func(interval string) string { return "global: {scrape_interval: " + interval + "}\n" }
	write(t, filepath.Join(source, "prometheus.yml"), config("11s"))
	p := port(t)
	a := start(t, "--directory="+source, "--app=prometheus", "--app-url=http://127.0.0.1:"+p)
	a.wantProbe("/startupz", http.StatusOK)
	labtest.StartCommand(t, labtest.Command{Path: "prometheus", Args: []string{
		"--config.file=" + a.root + "/prometheus.yml", "--web.listen-address=127.0.0.1:" + p, "--web.enable-lifecycle",
		"--storage.tsdb.path=" + t.TempDir(),
	}})
	running := "http://127.0.0.1:" + p + "/api/v1/status/config"
	wantBody(t, a, running, "scrape_interval: 11s")

	write(t, filepath.Join(source, "prometheus.yml"), config("22s"))
	wantBody(t, a, running, "scrape_interval: 22s")
	a.wantConfirmed()

	write(t, filepath.Join(source, "prometheus.yml"), "global: {scrape_interval: nonsense}\n")
	a.wantRejected("nonsense")
	if got := files(a.root)["prometheus.yml"]; got != config("22s") {
		t.Errorf("the refused file was published: %s", got)
	}
	write(t, filepath.Join(source, "prometheus.yml"), config("33s"))
	wantBody(t, a, running, "scrape_interval: 33s")
	a.wantMetric("lockstep_sync_degraded", "0")
}

// Without a check a bad file gets as far as the application. The agent sees
// that, puts the old one back, and health is good again.
func TestPrometheusRollBack(t *testing.T) {
	t.Parallel()
	need(t, "prometheus", "prometheus")
	source := t.TempDir()
	write(t, filepath.Join(source, "prometheus.yml"), "global: {scrape_interval: 11s}\n")
	p := port(t)
	a := start(t, "--directory="+source, "--app=prometheus", "--app-url=http://127.0.0.1:"+p, "--no-check",
		"--roll-back", "--max-failures=2", "--retry=50ms")
	a.wantProbe("/startupz", http.StatusOK)
	labtest.StartCommand(t, labtest.Command{Path: "prometheus", Args: []string{
		"--config.file=" + a.root + "/prometheus.yml", "--web.listen-address=127.0.0.1:" + p, "--web.enable-lifecycle",
		"--storage.tsdb.path=" + t.TempDir(),
	}})
	wantBody(t, a, "http://127.0.0.1:"+p+"/-/ready", "Ready")
	write(t, filepath.Join(source, "prometheus.yml"), "bad\n")
	labtest.Eventually(t, patience, func() (bool, string) {
		s := a.status()
		return s.Barred != "" && s.Confirmed == s.Published && s.Healthy, fmt.Sprintf("status %+v\n%s", s, a.Stderr())
	})
	a.wantFiles(map[string]string{"prometheus.yml": "global: {scrape_interval: 11s}\n"})
	a.wantMetric("lockstep_sync_degraded", "1")
	a.wantProbe("/healthz", http.StatusOK)
	wantBody(t, a, "http://127.0.0.1:"+p+"/metrics", "prometheus_config_last_reload_successful 1")
}

func nginxConfig(dir, p, answer string) string {
	return "daemon off;\nerror_log stderr;\npid " + dir + "/nginx.pid;\nevents {}\nhttp { access_log off; client_body_temp_path " + dir +
		"; proxy_temp_path " + dir + "; fastcgi_temp_path " + dir + "; uwsgi_temp_path " + dir + "; scgi_temp_path " + dir +
		";\nserver { listen 127.0.0.1:" + p + "; return 200 " + answer + "; } }\n"
}

// In subprocess mode the agent is nginx's parent: HUP, and new workers are the
// proof.
func TestNginxBySignal(t *testing.T) {
	t.Parallel()
	need(t, "nginx", "nginx")
	source, state, p := t.TempDir(), t.TempDir(), port(t)
	conf := filepath.Join(source, "nginx.conf")
	write(t, conf, nginxConfig(state, p, "one"))
	root := filepath.Join(t.TempDir(), "config")
	a := startIn(t, root, "--directory="+source, "--app=nginx", "--", "nginx", "-c", filepath.Join(root, "nginx.conf"))
	url := "http://127.0.0.1:" + p + "/"
	wantBody(t, a, url, "one")
	write(t, conf, nginxConfig(state, p, "two"))
	wantBody(t, a, url, "two")
	a.wantConfirmed()
	write(t, conf, "nonsense;")
	a.wantRejected(`unknown directive "nonsense"`)
	wantBody(t, a, url, "two")
	write(t, conf, nginxConfig(state, p, "three"))
	wantBody(t, a, url, "three")
	if code := a.Stop(t); code != 0 {
		t.Errorf("nginx ended with %d", code)
	}
}

// A bad file that nginx.conf includes does not get to nginx: included by relative
// path the preset's check finds it in the staged set, and by absolute path the
// recipe of docs/sync.md finds it after publishing and goes back.
func TestNginxIncludes(t *testing.T) {
	t.Parallel()
	need(t, "nginx", "nginx")
	for name, c := range map[string]struct {
		include string
		recipe  func(t *testing.T, root string) []string
		reason  podsync.Reason
	}{
		"relative": {"site.conf", func(*testing.T, string) []string { return []string{"--app=nginx"} }, podsync.Rejected},
		"absolute": {"/config/site.conf", recipeOfTheDocumentation, podsync.RolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, state, p := t.TempDir(), t.TempDir(), port(t)
			root := filepath.Join(t.TempDir(), "config")
			main := strings.Replace(nginxConfig(state, p, "one"), "http {", "http { include "+strings.Replace(c.include, "/config", root, 1)+";", 1)
			write(t, filepath.Join(source, "nginx.conf"), main)
			write(t, filepath.Join(source, "site.conf"), "server_tokens off;")
			a := startIn(t, root, append(append([]string{"--directory=" + source}, c.recipe(t, root)...),
				"--", "nginx", "-c", filepath.Join(root, "nginx.conf"))...)
			wantBody(t, a, "http://127.0.0.1:"+p+"/", "one")
			write(t, filepath.Join(source, "site.conf"), "nonsense;")
			labtest.Eventually(t, patience, func() (bool, string) {
				s := a.status()
				return s.Reason == c.reason && s.Healthy && files(root)["site.conf"] == "server_tokens off;", fmt.Sprintf("status %+v\n%s", s, a.Stderr())
			})
			wantBody(t, a, "http://127.0.0.1:"+p+"/", "one")
		})
	}
}

// recipeOfTheDocumentation is the printed command line, for another root.
func recipeOfTheDocumentation(t *testing.T, root string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/sync.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "```sh\n--app=nginx ")
	line, _, _ := strings.Cut(rest, "\n")
	args, err := argv.Split(strings.ReplaceAll(line, "/config", root))
	if err != nil || !found {
		t.Fatalf("docs/sync.md has no recipe: %v", err)
	}
	return append([]string{"--app=nginx"}, args...)
}

// nginx ignores a bad file on HUP in silence. Without a check the missing new
// workers show it, and the agent becomes unhealthy instead of being content.
func TestNginxSilentFailureIsNoticed(t *testing.T) {
	t.Parallel()
	need(t, "nginx", "nginx")
	source, state, p := t.TempDir(), t.TempDir(), port(t)
	conf := filepath.Join(source, "nginx.conf")
	write(t, conf, nginxConfig(state, p, "one"))
	root := filepath.Join(t.TempDir(), "config")
	a := startIn(t, root, "--directory="+source, "--app=nginx", "--no-check", "--confirm-timeout=1s", "--max-failures=2", "--retry=50ms",
		"--", "nginx", "-c", filepath.Join(root, "nginx.conf"))
	wantBody(t, a, "http://127.0.0.1:"+p+"/", "one")
	write(t, conf, "nonsense;")
	body := a.wantProbe("/healthz", http.StatusServiceUnavailable)
	if !strings.Contains(body, "no new worker process appeared") {
		t.Errorf("healthz says %s", body)
	}
	a.wantProbe("/healthz/source", http.StatusOK)
	write(t, conf, nginxConfig(state, p, "two"))
	wantBody(t, a, "http://127.0.0.1:"+p+"/", "two")
	a.wantProbe("/healthz", http.StatusOK)
}

func haproxyConfig(p, answer string) string {
	return "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind 127.0.0.1:" + p +
		"\n  http-request return status 200 content-type text/plain string " + answer + "\n"
}

func TestHAProxyBySignalAndMasterSocket(t *testing.T) {
	t.Parallel()
	need(t, "haproxy", "haproxy")
	source, p := t.TempDir(), port(t)
	socket := filepath.Join(t.TempDir(), "master.sock")
	conf := filepath.Join(source, "haproxy.cfg")
	write(t, conf, haproxyConfig(p, "one"))
	root := filepath.Join(t.TempDir(), "config")
	a := startIn(t, root, "--directory="+source, "--app=haproxy", "--app-socket="+socket,
		"--", "haproxy", "-W", "-S", socket, "-f", filepath.Join(root, "haproxy.cfg"))
	url := "http://127.0.0.1:" + p + "/"
	wantBody(t, a, url, "one")
	write(t, conf, haproxyConfig(p, "two"))
	wantBody(t, a, url, "two")
	a.wantConfirmed()
	write(t, conf, "nonsense\n")
	a.wantRejected("unknown keyword 'nonsense'")
	wantBody(t, a, url, "two")
	write(t, conf, haproxyConfig(p, "three"))
	wantBody(t, a, url, "three")
}

// HAProxy says itself that a reload failed.
func TestHAProxyFailedReloadIsNoticed(t *testing.T) {
	t.Parallel()
	need(t, "haproxy", "haproxy")
	source, p := t.TempDir(), port(t)
	socket := filepath.Join(t.TempDir(), "master.sock")
	conf := filepath.Join(source, "haproxy.cfg")
	write(t, conf, haproxyConfig(p, "one"))
	root := filepath.Join(t.TempDir(), "config")
	a := startIn(t, root, "--directory="+source, "--app=haproxy", "--app-socket="+socket, "--no-check", "--roll-back", "--max-failures=1",
		"--notify=socket:"+socket+":reload", "--", "haproxy", "-W", "-S", socket, "-f", filepath.Join(root, "haproxy.cfg"))
	wantBody(t, a, "http://127.0.0.1:"+p+"/", "one")
	// One failure is enough to roll back here, so that the master has to be up.
	labtest.Eventually(t, patience, func() (bool, string) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil, fmt.Sprint(err)
	})
	write(t, conf, "nonsense\n")
	labtest.Eventually(t, patience, func() (bool, string) {
		s := a.status()
		return s.Barred != "" && s.Confirmed == s.Published, fmt.Sprintf("status %+v\n%s", s, a.Stderr())
	})
	if !strings.Contains(a.Stderr(), "haproxy refused its configuration") {
		t.Errorf("the log does not say why\n%s", a.Stderr())
	}
	wantBody(t, a, "http://127.0.0.1:"+p+"/", "one")
}

func TestPostgreSQLBySignal(t *testing.T) {
	t.Parallel()
	postgres := need(t, "/usr/lib/postgresql/*/bin/postgres", "postgresql")
	bin := filepath.Dir(postgres)
	dir, source := t.TempDir(), t.TempDir()
	root := filepath.Join(dir, "config")
	data, p := filepath.Join(dir, "data"), port(t)
	asPostgres := func(args ...string) labtest.Command {
		return labtest.Command{Path: "setpriv", Args: append([]string{"--reuid=postgres", "--regid=postgres", "--clear-groups"}, args...)}
	}
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, code := labtest.RunCommand(t, asPostgres(bin+"/initdb", "-D", data, "-A", "trust", "-U", "postgres")); code != 0 {
		t.Fatalf("initdb: %s", stderr)
	}
	config := func(workMem string) string {
		return "data_directory = '" + data + "'\nhba_file = '" + data + "/pg_hba.conf'\nident_file = '" + data + "/pg_ident.conf'\n" +
			"listen_addresses = '127.0.0.1'\nport = " + p + "\nunix_socket_directories = ''\nwork_mem = " + workMem + "\n"
	}
	conf := filepath.Join(source, "postgresql.conf")
	write(t, conf, config("1MB"))
	if err := os.Chmod(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(source), 0o755); err != nil {
		t.Fatal(err)
	}
	psql := bin + "/psql -h 127.0.0.1 -p " + p + " -U postgres -XAtqc "
	a := &agent{t: t, root: root, addr: freeAddr(t)}
	a.Running = labtest.StartCommand(t, asPostgres(binary(t), "--root="+root, "--health-addr="+a.addr, "--quiet=0",
		"--directory="+source, "--app=postgresql", "--check="+postgres+" -C max_connections --config-file={dir}/postgresql.conf",
		"--confirm=exec:"+psql+"\"select 1 / (count(*) = 0)::int from pg_file_settings where error is not null\"",
		"--", postgres, "--config-file="+filepath.Join(root, "postgresql.conf")))
	show := func() string {
		stdout, stderr, _ := labtest.RunCommand(t, labtest.Command{Path: bin + "/psql", Args: []string{"-h", "127.0.0.1", "-p", p, "-U", "postgres", "-XAtqc", "show work_mem"}})
		return strings.TrimSpace(stdout + stderr)
	}
	wantSetting := func(want string) {
		t.Helper()
		labtest.Eventually(t, patience, func() (bool, string) {
			got := show()
			return got == want, fmt.Sprintf("work_mem is %s, want %s\n%s", got, want, a.Stderr())
		})
	}
	wantSetting("1MB")
	write(t, conf, config("2MB"))
	wantSetting("2MB")
	a.wantConfirmed()
	write(t, conf, config("nonsense"))
	a.wantRejected("work_mem")
	wantSetting("2MB")
	write(t, conf, config("3MB"))
	wantSetting("3MB")
}

// apache2 ends itself when it is told to reload a bad file. The check saves it.
func TestTheCheckSavesApache(t *testing.T) {
	t.Parallel()
	need(t, "apache2", "apache2")
	source, state, p := t.TempDir(), t.TempDir(), port(t)
	config := func(answer string) string {
		write(t, filepath.Join(state, answer, "index.html"), answer)
		return "ServerName localhost\nServerRoot /etc/apache2\nListen 127.0.0.1:" + p + "\nPidFile " + state + "/pid\nErrorLog " + state + "/log\n" +
			"LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so\nLoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n" +
			"LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so\nMutex file:" + state + "\nUser www-data\nGroup www-data\nDirectoryIndex index.html\nDocumentRoot " + filepath.Join(state, answer) + "\n"
	}
	for d := state; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(source, "apache2.conf")
	write(t, conf, config("one"))
	root := filepath.Join(t.TempDir(), "config")
	a := startIn(t, root, "--directory="+source, "--app=apache", "--", "apache2", "-DFOREGROUND", "-f", filepath.Join(root, "apache2.conf"))
	url := "http://127.0.0.1:" + p + "/"
	wantBody(t, a, url, "one")
	write(t, conf, config("two"))
	wantBody(t, a, url, "two")
	a.wantConfirmed()
	write(t, conf, config("two")+"Nonsense\n")
	a.wantRejected("Invalid command 'Nonsense'")
	wantBody(t, a, url, "two")
	write(t, conf, config("three"))
	wantBody(t, a, url, "three")
}

// The same for unbound, and what happens without the check: the application
// dies of the reload, the set that killed it is taken back, and it runs again.
func TestUnboundIsSavedByTheCheckOrByTheRollBack(t *testing.T) {
	t.Parallel()
	need(t, "unbound", "unbound")
	config := func(p, answer string) string {
		return "server:\n  interface: 127.0.0.1@" + p + "\n  do-daemonize: no\n  chroot: \"\"\n  username: \"\"\n  directory: \"/\"\n  pidfile: \"\"\n  use-syslog: no\n" +
			"  local-zone: test. static\n  local-data: 'x.test. TXT \"" + answer + "\"'\n"
	}
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		source, p := t.TempDir(), port(t)
		conf := filepath.Join(source, "unbound.conf")
		write(t, conf, config(p, "one"))
		root := filepath.Join(t.TempDir(), "config")
		a := startIn(t, root, "--directory="+source, "--app=unbound", "--", "unbound", "-c", filepath.Join(root, "unbound.conf"))
		wantTXT(t, a, p, "one")
		write(t, conf, config(p, "two"))
		wantTXT(t, a, p, "two")
		write(t, conf, "nonsense\n")
		a.wantRejected("unknown keyword 'nonsense'")
		wantTXT(t, a, p, "two")
	})
	t.Run("roll back", func(t *testing.T) {
		t.Parallel()
		source, p := t.TempDir(), port(t)
		conf := filepath.Join(source, "unbound.conf")
		write(t, conf, config(p, "one"))
		root := filepath.Join(t.TempDir(), "config")
		a := startIn(t, root, "--directory="+source, "--app=unbound", "--no-check", "--roll-back", "--", "unbound", "-c", filepath.Join(root, "unbound.conf"))
		wantTXT(t, a, p, "one")
		write(t, conf, "nonsense\n")
		labtest.Eventually(t, patience, func() (bool, string) {
			s := a.status()
			return s.Barred != "" && s.Reason == "RolledBack", fmt.Sprintf("status %+v\n%s", s, a.Stderr())
		})
		wantTXT(t, a, p, "one")
		write(t, conf, config(p, "two"))
		wantTXT(t, a, p, "two")
	})
}

// wantTXT asks the name server for x.test.
func wantTXT(t *testing.T, a *agent, p, want string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		got := txt(p)
		return got == want, fmt.Sprintf("x.test is %q, want %q\n%s", got, want, a.Stderr())
	})
}

func txt(p string) string {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+p)
	}}
	records, err := resolver.LookupTXT(context.Background(), "x.test")
	if err != nil || len(records) != 1 {
		return fmt.Sprint(err)
	}
	return records[0]
}

// A process of another user cannot be signalled; the message says what helps.
func TestSignalToAnotherUsersProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sleeper := labtest.StartCommand(t, labtest.Command{Path: "sh", Args: []string{"-c", "trap : HUP; while :; do sleep 1000; done"}})
	pidfile := filepath.Join(dir, "pid")
	write(t, pidfile, fmt.Sprint(sleeper.PID()))
	write(t, filepath.Join(dir, "source", "a"), "1")
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	a := &agent{t: t, root: filepath.Join(dir, "config"), addr: freeAddr(t)}
	a.Running = labtest.StartCommand(t, labtest.Command{Path: "setpriv", Args: []string{
		"--reuid=12345", "--regid=12345", "--clear-groups", "--bounding-set=-all",
		binary(t), "--root=" + a.root, "--health-addr=" + a.addr, "--directory=" + filepath.Join(dir, "source"), "--initial-notify=always",
		"--notify=signal:HUP@pidfile:" + pidfile, "--max-failures=1",
	}})
	body := a.wantProbe("/healthz", http.StatusServiceUnavailable)
	for _, want := range []string{"belongs to uid 0 and the agent is uid 12345", "the capability KILL (SYS_PTRACE is not needed)"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q lacks %q", body, want)
		}
	}
	if err := syscall.Kill(sleeper.PID(), 0); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
}
