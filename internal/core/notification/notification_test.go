package notification_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/notification"
)

const (
	index = "application/vnd.oci.image.index.v1+json"
	image = "application/vnd.docker.distribution.manifest.v2+json"
)

// event is one of distribution's envelope, with the fields that it documents.
func event(action, mediaType, repository, tag string) string {
	return fmt.Sprintf(`{"id":"7","timestamp":"2026-03-01T10:00:00Z","action":%q,
		"target":{"mediaType":%q,"size":708,"digest":"sha256:00","length":708,"repository":%q,"url":"https://r.example/v2/x","tag":%q},
		"request":{"id":"8","addr":"10.0.0.9:41","host":"r.example:5000","method":"PUT","useragent":"x"},"actor":{"name":"ci"},"source":{"addr":"registry-0:5000"}}`,
		action, mediaType, repository, tag)
}

func envelope(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

// github is one of GitHub's events about packages.
func github(event, kind, name, url string) string {
	return fmt.Sprintf(`{"action":"published",%q:{"id":1,"name":%q,"namespace":"Octo-Org","ecosystem":%q,"package_type":%[3]q,
		"package_version":{"id":2,"version":"sha256:00","package_url":%[4]q,"container_metadata":{"tag":{"name":"1.4","digest":"sha256:00"}}}},
		"sender":{"login":"octo"}}`, event, name, kind, url)
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format, body, registry string
		want                   []string
	}{
		"a push of an index":              {"distribution", envelope(event("push", index, "team/app", "1.4")), "", []string{"r.example:5000/team/app"}},
		"a push of an image":              {"distribution", envelope(event("push", image, "app", "latest")), "", []string{"r.example:5000/app"}},
		"pushed to another name":          {"distribution", envelope(event("push", index, "app", "1")), "pull.example", []string{"pull.example/app"}},
		"a pull":                          {"distribution", envelope(event("pull", index, "app", "1.4")), "", nil},
		"a deletion":                      {"distribution", envelope(event("delete", index, "app", "1.4")), "", nil},
		"a layer":                         {"distribution", envelope(event("push", "application/octet-stream", "app", "")), "", nil},
		"one platform's image, by digest": {"distribution", envelope(event("push", image, "app", "")), "", nil},
		"several, each once": {
			"distribution", envelope(event("push", index, "b", "1"), event("pull", index, "c", "1"), event("push", index, "a", "1"), event("push", index, "b", "2")), "",
			[]string{"r.example:5000/b", "r.example:5000/a"},
		},
		"no events":                 {"distribution", `{"events":[]}`, "", nil},
		"Docker Hub":                {"docker-hub", `{"callback_url":"https://evil.example/","push_data":{"pushed_at":1,"pusher":"ci","tag":"1.4"},"repository":{"name":"app","namespace":"team","repo_name":"team/app","repo_url":"https://hub.example/r/team/app"}}`, "", []string{"docker.io/team/app"}},
		"a mirror of Docker Hub":    {"docker-hub", `{"repository":{"repo_name":"library/nginx"}}`, "mirror.example", []string{"mirror.example/library/nginx"}},
		"GitHub's package":          {"ghcr", github("package", "CONTAINER", "App", "ghcr.io/octo-org/app:1.4"), "", []string{"ghcr.io/octo-org/app"}},
		"its older event":           {"ghcr", github("registry_package", "CONTAINER", "tools/app", "ghcr.io/octo-org/tools/app:1.4"), "", []string{"ghcr.io/octo-org/tools/app"}},
		"a version without a tag":   {"ghcr", github("package", "container", "app", "ghcr.io/octo-org/app:"), "", []string{"ghcr.io/octo-org/app"}},
		"without an address":        {"ghcr", github("package", "container", "App", ""), "", []string{"ghcr.io/octo-org/app"}},
		"GitHub's ping":             {"ghcr", `{"zen":"Keep it logically awesome.","hook_id":1,"hook":{"type":"Organization"}}`, "", nil},
		"a package of another kind": {"ghcr", github("package", "npm", "app", ""), "", nil},
		"generic":                   {"generic", `{"image":"r.example:5000/team/app:1.4"}`, "", []string{"r.example:5000/team/app"}},
		"generic without a tag":     {"generic", `{"image":"nginx"}`, "", []string{"docker.io/library/nginx"}},
	} {
		got, err := format(t, c.format).Repositories([]byte(c.body), c.registry)
		var names []string
		for _, r := range got {
			names = append(names, r.String())
		}
		if err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, names, err, c.want)
		}
	}
}

func format(t *testing.T, name string) notification.Format {
	t.Helper()
	for _, f := range notification.Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no format %s", name)
	return notification.Format{}
}

// TestInvalid: what is not of the format is refused with words that quote nothing of it.
func TestInvalid(t *testing.T) {
	t.Parallel()
	many := make([]string, 1001)
	for i := range many {
		many[i] = event("push", index, fmt.Sprint("app-", i), "1")
	}
	for name, c := range map[string]struct{ format, body string }{
		"nothing":                   {"generic", ""},
		"no JSON":                   {"distribution", "secret=1"},
		"cut off":                   {"distribution", envelope(event("push", index, "secret", "1"))[:300]},
		"another type":              {"distribution", `{"events":{"action":"push"}}`},
		"another format":            {"distribution", `{"image":"secret:1"}`},
		"no envelope":               {"distribution", "[]"},
		"a name that cannot exist":  {"distribution", envelope(event("push", index, "../../secret", "1"))},
		"too many":                  {"distribution", envelope(many...)},
		"Docker Hub without a name": {"docker-hub", `{"repository":{}}`},
		"Docker Hub, no object":     {"docker-hub", `{"repository":"secret"}`},
		"GitHub, another type":      {"ghcr", `{"package":"secret"}`},
		"GitHub without a name":     {"ghcr", `{"package":{"package_type":"container"}}`},
		"no image":                  {"generic", `{"picture":"secret"}`},
		"an address":                {"generic", `{"image":"https://secret.example/app:1"}`},
		"a number":                  {"generic", `{"image":1}`},
		"very deep":                 {"generic", strings.Repeat(`{"image":`, 20_000)},
	} {
		got, err := format(t, c.format).Repositories([]byte(c.body), "")
		if err == nil {
			t.Errorf("%s: read as %v", name, got)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the body: %v", name, err)
		}
	}
}

// FuzzRepositories: whatever arrives, what is found has a name that a container can have.
func FuzzRepositories(f *testing.F) {
	f.Add(envelope(event("push", index, "team/app", "1.4")), "")
	f.Add(github("package", "CONTAINER", "app", ""), "r.example")
	f.Add(`{"repository":{"repo_name":"team/app"}}`, "a b")
	f.Add(`{"image":"nginx"}`, "")
	f.Add(`{"image":"0.0_0/team/app"}`, "")
	f.Fuzz(func(t *testing.T, body, registry string) {
		for _, format := range notification.Formats() {
			found, _ := format.Repositories([]byte(body), registry)
			for _, r := range found {
				if r.Host == "" || r.Path == "" || strings.ContainsAny(r.String(), " \n@") {
					t.Errorf("%s: %+v", format.Name, r)
				}
			}
		}
	})
}
