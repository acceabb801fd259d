package registrylab

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	service = "registry of the lab"
	issuer  = "lab"
)

// User and Password may read and write everything.
const (
	User     = "lab"
	Password = "lab-password"
)

// Tokens is a token server with one user, and readers with the repositories that they may
// read.
type Tokens struct {
	identity *identity
	life     time.Duration

	mu      sync.Mutex
	readers map[string]reader // by name
	// firstOnly issues tokens for the first requested scope only, as some servers do.
	firstOnly bool
}

type reader struct {
	password     string
	repositories []string
}

// AddReader lets a user read some repositories.
func (t *Tokens) AddReader(name, password string, repositories ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readers == nil {
		t.readers = map[string]reader{}
	}
	t.readers[name] = reader{password, repositories}
}

// OpenFirstOnly makes tokens valid only for the first requested repository.
func (t *Tokens) OpenFirstOnly() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.firstOnly = true
}

// access is one entry of a token, as distribution reads it.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// ServeHTTP issues a token, by user and password or by an identity token that is the
// password.
func (t *Tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	scopes := r.URL.Query()["scope"]
	if r.Method == http.MethodPost {
		user, password = User, r.PostFormValue("refresh_token")
		scopes = strings.Fields(r.PostFormValue("scope"))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	who, known := t.readers[user]
	all := user == User && password == Password
	if user != "" && !all && (!known || who.password != password) {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	if t.firstOnly && len(scopes) > 1 {
		scopes = scopes[:1]
	}
	var granted []access
	for _, scope := range scopes {
		parts := strings.Split(scope, ":")
		if len(parts) != 3 || !all && !slices.Contains(who.repositories, parts[1]) {
			continue
		}
		actions := strings.Split(parts[2], ",")
		if !all {
			actions = []string{"pull"}
		}
		granted = append(granted, access{parts[0], parts[1], actions})
	}
	life := t.life
	if life == 0 {
		life = 5 * time.Minute
	}
	token, err := t.sign(user, granted, life)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"token": %q, "expires_in": %d}`, token, int(life/time.Second))
}

// sign creates a JSON web token. It is valid from slightly in the past, in case clocks
// differ; distribution allows for that too.
func (t *Tokens) sign(user string, granted []access, life time.Duration) (string, error) {
	now := time.Now()
	header, err := json.Marshal(map[string]any{"typ": "JWT", "alg": "ES256", "x5c": []string{base64.StdEncoding.EncodeToString(t.identity.der)}})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": service, "sub": user, "access": granted, "jti": rand.Text(),
		"nbf": now.Add(-time.Minute).Unix(), "iat": now.Unix(), "exp": now.Add(life).Unix(),
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, t.identity.key, sum[:])
	if err != nil {
		return "", err
	}
	const half = 32
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
