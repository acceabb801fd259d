package apps_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// get is the body of an answer, or the error's text.
func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func wantBody(t *testing.T, a *agentkit.Agent, url, want string) {
	t.Helper()
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		got := get(url)
		return strings.Contains(got, want), fmt.Sprintf("%s answers %q, want %q\n%s", url, got, want, a.Stderr())
	})
}

// wantRolledBack waits until a set was refused by the application, the one before it is
// back, and the application has confirmed that.
func wantRolledBack(a *agentkit.Agent) {
	a.WantStatus("the set rolled back", func(s podsync.Status) bool {
		return s.Barred != "" && s.Published != s.Barred && s.Confirmed == s.Published
	})
}

func TestPrometheus(t *testing.T) {
	t.Parallel()
	prometheus := labtest.Need(t, "prometheus")
	source, root, port := t.TempDir(), agentkit.NewRoot(t), agentkit.FreePort(t)
	file, address := filepath.Join(source, "prometheus.yml"), "http://127.0.0.1:"+port
	config := func(interval string) string { return "global: {scrape_interval: " + interval + "}\n" }
	agentkit.Write(t, file, config("11s"))
	flags := []string{"--directory=" + source, "--app=prometheus", "--app-url=" + address}

	// The agent reloads it over HTTP and confirms by its own metric.
	a := agentkit.StartIn(t, root, flags...)
	a.WantProbe("/startupz", http.StatusOK)
	labtest.StartCommand(t, labtest.Command{Path: prometheus, Args: []string{
		"--config.file=" + root + "/prometheus.yml", "--web.listen-address=127.0.0.1:" + port, "--web.enable-lifecycle", "--storage.tsdb.path=" + t.TempDir(),
	}})
	running := address + "/api/v1/status/config"
	wantBody(t, a, running, "scrape_interval: 11s")
	agentkit.Write(t, file, config("22s"))
	wantBody(t, a, running, "scrape_interval: 22s")
	a.WantConfirmed()
	agentkit.Write(t, file, config("nonsense"))
	a.WantRejected("nonsense")
	a.WantFiles(map[string]string{"prometheus.yml": config("22s")})
	agentkit.Write(t, file, config("33s"))
	wantBody(t, a, running, "scrape_interval: 33s")
	a.WantMetric("lockstep_sync_degraded", "0")
	a.WantConfirmed()
	a.Stop(t)

	// Without a check a bad file gets as far as the application. The agent sees that, puts
	// the old one back, and health is good again.
	a = agentkit.StartIn(t, root, append(flags, "--no-check", "--roll-back", "--max-failures=2", "--retry=50ms")...)
	a.WantProbe("/startupz", http.StatusOK)
	agentkit.Write(t, file, "bad\n")
	wantRolledBack(a)
	a.WantFiles(map[string]string{"prometheus.yml": config("33s")})
	a.WantMetric("lockstep_sync_degraded", "1")
	a.WantProbe("/healthz", http.StatusOK)
	wantBody(t, a, address+"/metrics", "prometheus_config_last_reload_successful 1")
	wantBody(t, a, running, "scrape_interval: 33s")
}

// nginx is a configuration of nginx.
type nginx struct{ state, port, includes string }

func (n nginx) config(answer string) string {
	temporary := ""
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += name + "_temp_path " + n.state + "; "
	}
	return "daemon off;\nerror_log stderr;\npid " + n.state + "/nginx.pid;\nevents {}\nhttp { access_log off; " + temporary + n.includes +
		"\nserver { listen 127.0.0.1:" + n.port + "; return 200 " + answer + "; } }\n"
}

// The agent is nginx's parent: it sends HUP, and new workers are the proof.
func TestNginx(t *testing.T) {
	t.Parallel()
	program := labtest.Need(t, "nginx")
	source, root, port := t.TempDir(), agentkit.NewRoot(t), agentkit.FreePort(t)
	conf, site, foreign := filepath.Join(source, "nginx.conf"), filepath.Join(source, "site.conf"), filepath.Join(root, "foreign.conf")
	n := nginx{state: t.TempDir(), port: port, includes: "include site.conf; include foreign*.conf;"}
	const good = "server_tokens off;"
	agentkit.Write(t, conf, n.config("one"))
	agentkit.Write(t, site, good)
	a := agentkit.StartIn(t, root, "--directory="+source, "--app=nginx", "--confirm-timeout=1s", "--max-failures=2", "--retry=50ms",
		"--", program, "-c", filepath.Join(root, "nginx.conf"))
	url := "http://127.0.0.1:" + port + "/"
	wantBody(t, a, url, "one")
	agentkit.Write(t, conf, n.config("two"))
	wantBody(t, a, url, "two")
	a.WantConfirmed()

	// The check refuses a bad file.
	agentkit.Write(t, conf, "nonsense;")
	a.WantRejected(`unknown directive "nonsense"`)
	wantBody(t, a, url, "two")
	agentkit.Write(t, conf, n.config("three"))
	wantBody(t, a, url, "three")
	a.WantConfirmed()

	// It finds one that is included by relative path in the staged set.
	agentkit.Write(t, site, "nonsense;")
	a.WantStatus("the set refused", func(s podsync.Status) bool { return s.Reason == podsync.Rejected && s.Healthy })
	if got := agentkit.Files(root)["site.conf"]; got != good {
		t.Errorf("the refused file was published: %s", got)
	}
	wantBody(t, a, url, "three")
	agentkit.Write(t, site, good)
	a.WantConfirmed()

	// It doesn't find one that another program has put beside the published files. nginx
	// ignores a bad file on HUP in silence. The missing new workers show it.
	agentkit.Write(t, foreign, "nonsense;")
	agentkit.Write(t, conf, n.config("four"))
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		code, body := a.Probe("/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "no new worker process appeared"), fmt.Sprintf("healthz answers %d %s\n%s", code, body, a.Stderr())
	})
	a.WantProbe("/healthz/source", http.StatusOK)
	wantBody(t, a, url, "three")
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	wantBody(t, a, url, "four")
	a.WantProbe("/healthz", http.StatusOK)
	if code := a.Stop(t); code != 0 {
		t.Errorf("nginx ended with %d", code)
	}

	// The recipe of docs/reference/sync.md checks files that are included by absolute path after
	// publishing, and goes back.
	n.includes = "include " + root + "/site.conf;"
	agentkit.Write(t, conf, n.config("five"))
	a = agentkit.StartIn(t, root, append(append([]string{"--directory=" + source}, recipeOfTheDocumentation(t, root)...),
		"--", program, "-c", filepath.Join(root, "nginx.conf"))...)
	wantBody(t, a, url, "five")
	agentkit.Write(t, site, "nonsense;")
	a.WantStatus("the set rolled back", func(s podsync.Status) bool { return s.Reason == podsync.RolledBack && s.Healthy })
	if got := agentkit.Files(root)["site.conf"]; got != good {
		t.Errorf("the refused file is still published: %s", got)
	}
	wantBody(t, a, url, "five")
}

// recipeOfTheDocumentation is the printed command line, for another root.
func recipeOfTheDocumentation(t *testing.T, root string) []string {
	t.Helper()
	_, rest, found := strings.Cut(agentkit.Read("../../docs/reference/sync.md"), "```sh\n--app=nginx ")
	line, _, _ := strings.Cut(rest, "\n")
	args, err := argv.Split(strings.ReplaceAll(line, "/config", root))
	if err != nil || !found {
		t.Fatalf("docs/reference/sync.md has no recipe: %v", err)
	}
	return append([]string{"--app=nginx"}, args...)
}

// HAProxy reads two files. One comes from the agent that is its parent, which signals it.
// The other one comes from an agent beside it, which uses the master socket.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	program := labtest.Need(t, "haproxy")
	source, beside, port := t.TempDir(), t.TempDir(), agentkit.FreePort(t)
	root, socket := agentkit.NewRoot(t), filepath.Join(t.TempDir(), "master.sock")
	conf, more := filepath.Join(source, "haproxy.cfg"), filepath.Join(beside, "more.cfg")
	config := func(answer string) string {
		return "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind 127.0.0.1:" + port +
			"\n  http-request return status 200 content-type text/plain string " + answer + "\n"
	}
	const good = "backend more\n"
	agentkit.Write(t, conf, config("one"))
	agentkit.Write(t, more, good)
	b := agentkit.Start(t, "--directory="+beside, "--app=haproxy", "--app-socket="+socket, "--no-check", "--roll-back", "--max-failures=1",
		"--notify=socket:"+socket+":reload", "--initial-notify=never")
	b.WantFiles(map[string]string{"more.cfg": good})
	a := agentkit.StartIn(t, root, "--directory="+source, "--app=haproxy", "--app-socket="+socket,
		"--", program, "-W", "-S", socket, "-f", filepath.Join(root, "haproxy.cfg"), "-f", filepath.Join(b.Root, "more.cfg"))
	url := "http://127.0.0.1:" + port + "/"
	wantBody(t, a, url, "one")
	agentkit.Write(t, conf, config("two"))
	wantBody(t, a, url, "two")
	a.WantConfirmed()
	agentkit.Write(t, conf, "nonsense\n")
	a.WantRejected("unknown keyword 'nonsense'")
	wantBody(t, a, url, "two")
	agentkit.Write(t, conf, config("three"))
	wantBody(t, a, url, "three")
	a.WantConfirmed()

	// HAProxy reports itself that a reload failed.
	agentkit.Write(t, more, "nonsense\n")
	wantRolledBack(b)
	b.WantFiles(map[string]string{"more.cfg": good})
	if !strings.Contains(b.Stderr(), "haproxy rejected its configuration") {
		t.Errorf("the log doesn't say why\n%s", b.Stderr())
	}
	wantBody(t, a, url, "three")
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	postgres := labtest.Need(t, "/usr/lib/postgresql/*/bin/postgres")
	bin := filepath.Dir(postgres)
	dir, source, port := t.TempDir(), t.TempDir(), agentkit.FreePort(t)
	root, data, addr := filepath.Join(dir, "config"), filepath.Join(dir, "data"), agentkit.FreeAddr(t)
	asPostgres := func(args ...string) labtest.Command {
		return labtest.Command{Path: "setpriv", Args: append([]string{"--reuid=postgres", "--regid=postgres", "--clear-groups"}, args...)}
	}
	agentkit.OpenPath(t, dir, 0o777)
	initdb := labtest.StartCommand(t, asPostgres(bin+"/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C"))
	if code := initdb.ExitCode(t, 2*agentkit.Patience); code != 0 {
		t.Fatalf("initdb: %s", initdb.Stderr())
	}
	config := func(workMem string) string {
		return "data_directory = '" + data + "'\nhba_file = '" + data + "/pg_hba.conf'\nident_file = '" + data + "/pg_ident.conf'\n" +
			"listen_addresses = '127.0.0.1'\nport = " + port + "\nunix_socket_directories = ''\nfsync = off\nwork_mem = " + workMem + "\n"
	}
	conf := filepath.Join(source, "postgresql.conf")
	agentkit.Write(t, conf, config("1MB"))
	agentkit.OpenPath(t, source, 0o755)
	psql := bin + "/psql -h 127.0.0.1 -p " + port + " -U postgres -XAtqc "
	a := agentkit.New(t, labtest.StartCommand(t, asPostgres(agentkit.Program(t), "--root="+root, "--health-addr="+addr, "--quiet=0",
		"--directory="+source, "--app=postgresql", "--check="+postgres+" -C max_connections --config-file={dir}/postgresql.conf",
		"--confirm=exec:"+psql+"\"select 1 / (count(*) = 0)::int from pg_file_settings where error is not null\"",
		"--", postgres, "--config-file="+filepath.Join(root, "postgresql.conf"))), root, addr)
	wantSetting := func(want string) {
		t.Helper()
		labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
			stdout, stderr, _ := labtest.RunCommand(t, labtest.Command{Path: bin + "/psql", Args: []string{"-h", "127.0.0.1", "-p", port, "-U", "postgres", "-XAtqc", "show work_mem"}})
			got := strings.TrimSpace(stdout + stderr)
			return got == want, fmt.Sprintf("work_mem is %s, want %s\n%s", got, want, a.Stderr())
		})
	}
	wantSetting("1MB")
	agentkit.Write(t, conf, config("2MB"))
	wantSetting("2MB")
	a.WantConfirmed()
	agentkit.Write(t, conf, config("nonsense"))
	a.WantRejected("work_mem")
	wantSetting("2MB")
	agentkit.Write(t, conf, config("3MB"))
	wantSetting("3MB")
}

// apache2 ends itself when it is told to reload a bad file. The check saves it.
func TestApache(t *testing.T) {
	t.Parallel()
	program := labtest.Need(t, "apache2")
	source, state, root, port := t.TempDir(), t.TempDir(), agentkit.NewRoot(t), agentkit.FreePort(t)
	config := func(answer string) string {
		agentkit.Write(t, filepath.Join(state, answer, "index.html"), answer)
		return "ServerName localhost\nServerRoot /etc/apache2\nListen 127.0.0.1:" + port + "\nPidFile " + state + "/pid\nErrorLog " + state + "/log\n" +
			"LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so\nLoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n" +
			"LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so\nMutex file:" + state + "\nUser www-data\nGroup www-data\nDirectoryIndex index.html\nDocumentRoot " + filepath.Join(state, answer) + "\n"
	}
	agentkit.OpenPath(t, state, 0o755)
	conf := filepath.Join(source, "apache2.conf")
	agentkit.Write(t, conf, config("one"))
	a := agentkit.StartIn(t, root, "--directory="+source, "--app=apache", "--", program, "-DFOREGROUND", "-f", filepath.Join(root, "apache2.conf"))
	url := "http://127.0.0.1:" + port + "/"
	wantBody(t, a, url, "one")
	agentkit.Write(t, conf, config("two"))
	wantBody(t, a, url, "two")
	a.WantConfirmed()
	agentkit.Write(t, conf, config("two")+"Nonsense\n")
	a.WantRejected("Invalid command 'Nonsense'")
	wantBody(t, a, url, "two")
	agentkit.Write(t, conf, config("three"))
	wantBody(t, a, url, "three")
}

// A bad file ends unbound at its reload. The check saves it. Without the check the agent
// takes the set that ended it back, and unbound runs again.
func TestUnbound(t *testing.T) {
	t.Parallel()
	program := labtest.Need(t, "unbound")
	source, root, port := t.TempDir(), agentkit.NewRoot(t), agentkit.FreePort(t)
	config := func(answer string) string {
		return "server:\n  interface: 127.0.0.1@" + port + "\n  do-daemonize: no\n  chroot: \"\"\n  username: \"\"\n  directory: \"/\"\n  pidfile: \"\"\n  use-syslog: no\n" +
			"  local-zone: test. static\n  local-data: 'x.test. TXT \"" + answer + "\"'\n"
	}
	conf := filepath.Join(source, "unbound.conf")
	agentkit.Write(t, conf, config("one"))
	start := func(flags ...string) *agentkit.Agent {
		flags = append([]string{"--directory=" + source, "--app=unbound"}, flags...)
		return agentkit.StartIn(t, root, append(flags, "--", program, "-c", filepath.Join(root, "unbound.conf"))...)
	}
	a := start()
	wantTXT(t, a, port, "one")
	agentkit.Write(t, conf, config("two"))
	wantTXT(t, a, port, "two")
	agentkit.Write(t, conf, "nonsense\n")
	a.WantRejected("unknown keyword 'nonsense'")
	wantTXT(t, a, port, "two")

	agentkit.Write(t, conf, config("three"))
	wantTXT(t, a, port, "three")
	a.Stop(t)
	a = start("--no-check", "--roll-back")
	wantTXT(t, a, port, "three")
	agentkit.Write(t, conf, "nonsense\n")
	a.WantStatus("the set rolled back", func(s podsync.Status) bool { return s.Barred != "" && s.Reason == podsync.RolledBack })
	wantTXT(t, a, port, "three")
	agentkit.Write(t, conf, config("four"))
	wantTXT(t, a, port, "four")
}

// wantTXT asks the name server for x.test.
func wantTXT(t *testing.T, a *agentkit.Agent, port, want string) {
	t.Helper()
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		got := txt(t.Context(), port)
		return got == want, fmt.Sprintf("x.test is %q, want %q\n%s", got, want, a.Stderr())
	})
}

func txt(ctx context.Context, port string) string {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
	}}
	records, err := resolver.LookupTXT(ctx, "x.test")
	if err != nil || len(records) != 1 {
		return fmt.Sprint(err)
	}
	return records[0]
}
