package keychain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// secrets stands for the API server: what is in a Secret is all that matters here.
type secrets map[string]map[string][]byte

func (s secrets) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	data, ok := s[namespace+"/"+name]
	if !ok {
		return nil, errors.New("not found")
	}
	return &corev1.Secret{Data: data}, nil
}

func repository(t *testing.T, text string) tagspec.Repository {
	t.Helper()
	r, err := tagspec.ParseRepository(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func users(credentials []keychain.Credential) string {
	names := make([]string, len(credentials))
	for i, c := range credentials {
		names[i] = c.Username
	}
	return strings.Join(names, " ")
}

// TestPullSecretsAsTheKubelet: which of the places of a pull secret are those of an
// image, and in which order.
func TestPullSecretsAsTheKubelet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, places, image, want string }{
		{"the host", "r.example", "r.example/team/app", "r.example"},
		{"another host", "r.example", "s.example/team/app", ""},
		{"a host that begins alike", "r.example", "r.example.org/app", ""},
		{"a scheme", "https://r.example", "r.example/app", "https://r.example"},
		{"a scheme and the API's version", "https://r.example/v2/", "r.example/app", "https://r.example/v2/"},
		{"a path", "r.example/team", "r.example/team/app", "r.example/team"},
		{"another path", "r.example/team", "r.example/other/app", ""},
		{"longer paths first", "r.example r.example/team/app r.example/team", "r.example/team/app", "r.example/team/app r.example/team r.example"},
		{"the port", "r.example:5000", "r.example:5000/app", "r.example:5000"},
		{"no port", "r.example", "r.example:5000/app", ""},
		{"another port", "r.example:5001", "r.example:5000/app", ""},
		{"a star for a label", "*.example", "r.example/app", "*.example"},
		{"a star for part of a label", "r*.example", "reg.example/app", "r*.example"},
		{"a star is one label", "*.example", "a.b.example/app", ""},
		{"a star and a port", "*.example:5000", "r.example:5000/app", "*.example:5000"},
		{"no star for the port", "r.example:*", "r.example:5000/app", ""},
		{"a broken pattern", "[.example", "r.example/app", ""},
		{"Docker Hub by its login", "https://index.docker.io/v1/", "nginx", "https://index.docker.io/v1/"},
		{"Docker Hub by the name in images", "docker.io", "nginx", "docker.io"},
		{"Docker Hub's login only where none else matches", "https://index.docker.io/v1/ docker.io/library", "nginx", "docker.io/library"},
		{"Docker Hub's login is for no other registry", "https://index.docker.io/v1/", "r.example/app", ""},
		{"IPv6", "[::1]:5000", "[::1]:5000/app", "[::1]:5000"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			auths := map[string]any{}
			for place := range strings.FieldsSeq(c.places) {
				auths[place] = map[string]string{"username": place, "password": "p"}
			}
			text, _ := json.Marshal(map[string]any{"auths": auths})
			legacy, _ := json.Marshal(auths)
			for key, data := range map[string][]byte{corev1.DockerConfigJsonKey: text, corev1.DockerConfigKey: legacy} {
				from := keychain.PullSecrets{Reader: secrets{"shop/pull": {key: data}}, Namespace: "shop", Names: []string{"pull"}}
				got, err := from.Credentials(t.Context(), repository(t, c.image))
				if err != nil || users(got) != c.want {
					t.Errorf("%s: got %q, error %v, want %q", key, users(got), err, c.want)
				}
			}
		})
	}
}

func TestOneBadSecretSpoilsNoOther(t *testing.T) {
	t.Parallel()
	reader := secrets{
		"shop/good":     {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"auth":"bWU6cGE6c3M="}}}`)},
		"shop/broken":   {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"password":"hunter2"}`)},
		"shop/half":     {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"auth":"aHVudGVyMg=="},"r.example/team":{"auth":"eW91OnA"}}}`)},
		"shop/opaque":   {"password": []byte("hunter2")},
		"other/foreign": {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"auth":"bWU6cGFzcw=="}}}`)},
	}
	from := keychain.PullSecrets{Reader: reader, Namespace: "shop", Names: []string{"missing", "broken", "opaque", "foreign", "half", "good"}}
	got, err := from.Credentials(t.Context(), repository(t, "r.example/team/app"))
	if want := []keychain.Credential{{Username: "you", Password: "p"}, {Username: "me", Password: "pa:ss"}}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want you and me", users(got))
	}
	for _, want := range []string{
		"pull secret shop/missing: not found", "shop/broken: is not the JSON", "shop/opaque: contains neither", "shop/foreign: not found",
		"shop/half: credentials for r.example: auth is not base64",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Error("a password is in the error")
	}
}

// TestFileIsReadAgain: a Secret that is mounted as a file is replaced while the program
// runs.
func TestFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	file := keychain.File{Path: path}
	check := func(want string) {
		t.Helper()
		got, err := file.Credentials(t.Context(), repository(t, "nginx"))
		if err != nil || users(got) != want {
			t.Errorf("got %q, error %v, want %q", users(got), err, want)
		}
	}
	check("")
	named := keychain.File{Path: path, Named: true}
	if _, err := named.Credentials(t.Context(), repository(t, "nginx")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error of a missing file is %v", err)
	}
	for _, user := range []string{"first", "other"} {
		text := fmt.Sprintf(`{"auths":{"https://index.docker.io/v1/":{"username":%q,"password":"p"}}}`, user)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check(user)
	}
	if err := os.WriteFile(path, []byte(`{"auths": hunter2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Credentials(t.Context(), repository(t, "nginx")); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), path) {
		t.Errorf("error of a broken file is %v", err)
	}
}

func TestCredentialHelper(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script := `#!/bin/sh
read server
case $server in
r.example) echo '{"ServerURL":"r.example","Username":"me","Secret":"s"}' ;;
https://index.docker.io/v1/) echo '{"Username":"<token>","Secret":"identity"}' ;;
broken.example) echo hunter2; exit 1 ;;
*) echo credentials not found in native keychain; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte(`{"auths":{"r.example":{}},"credsStore":"test","credHelpers":{"evil.example":"../../bin/sh"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string][]keychain.Credential{
		"r.example/app": {{Username: "me", Password: "s"}}, "nginx": {{IdentityToken: "identity"}}, "other.example/app": {},
	} {
		got, err := keychain.File{Path: path}.Credentials(t.Context(), repository(t, image))
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %d credentials, error %v, want %d", image, len(got), err, len(want))
		}
	}
	for image, want := range map[string]string{"broken.example/app": "run docker-credential-test", "evil.example/app": "isn't the name of a program"} {
		_, err := keychain.File{Path: path}.Credentials(t.Context(), repository(t, image))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want %q in it", image, err, want)
		}
	}
}

func TestChainTriesEachOnce(t *testing.T) {
	t.Parallel()
	reader := secrets{"shop/a": {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"auth":"bWU6cGFzcw=="}}}`)}}
	one := keychain.PullSecrets{Reader: reader, Namespace: "shop", Names: []string{"a"}}
	missing := keychain.PullSecrets{Reader: reader, Namespace: "shop", Names: []string{"b"}}
	got, err := keychain.Chain{missing, one, one}.Credentials(t.Context(), repository(t, "r.example/app"))
	if users(got) != "me" || err == nil {
		t.Errorf("got %q, error %v, want me once and what is missing", users(got), err)
	}
}

// TestCredentialIsNeverShown: not even by a message that prints what it has at hand.
func TestCredentialIsNeverShown(t *testing.T) {
	t.Parallel()
	c := keychain.Credential{Username: "u-hunter2", Password: "p-hunter2", IdentityToken: "i-hunter2", RegistryToken: "r-hunter2"}
	inside := struct{ C keychain.Credential }{c}
	asJSON, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x", c, c, c, c, c, c), fmt.Sprintf("%+v %#v", inside, &inside), string(asJSON)} {
		if strings.Contains(text, "hunter2") || text == "" {
			t.Errorf("printed as %s", text)
		}
	}
	other := c
	other.Username, other.Password = c.Username+c.Password[:1], c.Password[1:]
	if c.Fingerprint() == other.Fingerprint() || c.Fingerprint() == (keychain.Credential{}).Fingerprint() {
		t.Error("two credentials have one fingerprint")
	}
}

// FuzzDockerConfig: whatever is in a pull secret, an error is short and doesn't quote what may be a
// password.
func FuzzDockerConfig(f *testing.F) {
	for _, seed := range []string{
		`{"auths":{"registry.example":{"auth":"YTpi"}}}`, `{"auths":{"https://registry.example/v1/":{"username":"a","password":"b"}}}`,
		`{"registry.example":{"auth":"YTpi"}}`, `{"auths":{"*.example":{"auth":"!"},"[":{"auth":"YQ"}}}`, `{"auths":[]}`, `{"auths":{"registry.example/team":{"identitytoken":"a"}}}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, key := range []string{corev1.DockerConfigJsonKey, corev1.DockerConfigKey} {
			source := keychain.PullSecrets{Reader: secrets{"shop/pull": {key: text}}, Namespace: "shop", Names: []string{"pull"}}
			found, err := source.Credentials(t.Context(), tagspec.Repository{Host: "registry.example", Path: "team/app"})
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			for _, credential := range found {
				if credential == (keychain.Credential{}) {
					t.Error("an empty credential")
				}
			}
		}
	})
}
