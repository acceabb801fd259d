package reload_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// login writes a Docker configuration with the credentials of the registry.
func (g *gallery) login(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, g.registry.Address, auth), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCredentialsOfTheController: a workload without a pull secret gets the image of a private
// repository if an administrator has named its namespace. Otherwise its event and "explain" say which
// flag and which value would allow it.
func TestCredentialsOfTheController(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	file := g.login(t)
	g.make(t, deployment("web", g.wants("app", "app:latest"), "containers: [{name: app, image: '"+g.at("app:latest")+"'}]"))
	c := g.open(t, "--docker-config", file, "--docker-config-namespaces", "another")
	const says = "an administrator can allow it with --docker-config-namespaces (in the chart images.dockerConfigNamespaces)"
	g.AwaitEvent(t, "web", "Warning Unresolved", "namespace "+g.Namespace+" isn't allowed to use the controller's credentials in --docker-config", says)
	g.awaitExplained(t, "deployment/web", says)
	c.Stop(t)
	g.open(t, "--docker-config", file, "--docker-config-namespaces", "another,"+g.Namespace)
	g.awaitImage(t, web, "app", first)
}

// TestHostileRegistry: a list of huge tags without an end, compressed, is refused in words that name the
// bound, and counted. Another image of the same registry is followed.
func TestHostileRegistry(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.push(t, "endless:1.0", "two")
	g.registry.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) != "tags" {
			return false
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Link", fmt.Sprintf(`</v2/endless/tags/list?last=%s>; rel="next"`, r.URL.Query().Get("last")+"x"))
		z := gzip.NewWriter(w)
		_, err := io.WriteString(z, `{"tags":["`+strings.Repeat("x", 7<<20)+`"]}`)
		return z.Close() == nil && err == nil
	})
	g.make(t, deployment("hostile", g.wants("app", "endless:1.*"), g.runs("endless:1.0"))+deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	address := freeAddress(t)
	g.open(t, "--metrics-addr", address)
	const says = "the list exceeds the limit of 16777216 bytes"
	g.AwaitEvent(t, "hostile", "Warning Unresolved", says, "request an exact tag")
	g.awaitExplained(t, "deployment/hostile", says)
	g.awaitImage(t, web, "app", first)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text := scrape(t, address)
		return strings.Contains(text, `lockstep_registry_bounds_total{bound="list-bytes"} `) && !strings.Contains(text, `lockstep_registry_bounds_total{bound="list-bytes"} 0`) &&
			strings.Contains(text, `result="TooLarge"`), text
	})
}

func (g *gallery) awaitExplained(t testing.TB, ref, says string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text := g.command(t, "explain", ref, "--controller-namespace", g.Own)
		return strings.Contains(strings.Join(strings.Fields(text), " "), says), text
	})
}
