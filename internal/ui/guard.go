package ui

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// tokenParameter is the token's name in the address that the command prints.
const tokenParameter = "token"

// policy lets a page load only what this server serves, and run no script but its own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard refuses every request that isn't the user's own. Other programs and other pages in the
// same browser can reach the address too: they lack the token, or name another Host (DNS
// rebinding) or Origin (cross-site).
type guard struct {
	hosts  []string
	cookie string
	token  string
}

func newGuard(address net.Addr, token string) (guard, error) {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return guard{}, fmt.Errorf("read the address %s: %w", address, err)
	}
	// Browsers send cookies to all ports of a host, so the name contains the port.
	g := guard{cookie: "lockstep-ui-" + port, token: token}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		g.hosts = append(g.hosts, net.JoinHostPort(name, port))
		if port == "80" {
			g.hosts = append(g.hosts, name)
		}
	}
	return g, nil
}

// protect lets only the user's own requests pass.
func (g guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		// With "no-referrer", browsers send "Origin: null" with our own forms.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !slices.Contains(g.hosts, r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "This address doesn't belong to lockstep ui.")
			return
		}
		if !g.isOwn(r) {
			refuse(w, http.StatusForbidden, "Another site requested this page. Open the address that lockstep ui printed.")
			return
		}
		if given := r.URL.Query().Get(tokenParameter); given != "" && r.Method == http.MethodGet && g.accepts(given) {
			g.admit(w, r)
			return
		}
		if !g.knows(r) {
			refuse(w, http.StatusForbidden, "Open the address that lockstep ui printed when it started: it contains the token that this page needs. An address from an earlier start doesn't work.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwn reports whether one of our pages sent the request, or the user by hand. A request that
// changes something must say which page it comes from.
func (g guard) isOwn(r *http.Request) bool {
	origin, sent := r.Header["Origin"]
	if !sent && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	for _, o := range origin {
		if o != "http://"+r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// admit keeps the token in a cookie, so it doesn't stay in the address and the history.
func (g guard) admit(w http.ResponseWriter, r *http.Request) {
	//nolint:gosec // A Secure cookie needs TLS, and 127.0.0.1 has none.
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	query := r.URL.Query()
	query.Del(tokenParameter)
	// One slash: "//example.com" is another host.
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: query.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func (g guard) knows(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return g.accepts(c.Value) })
}

// accepts compares in constant time, whatever the length.
func (g guard) accepts(token string) bool {
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// refuse says why in a page of its own: the style belongs to those who have the token.
// It doesn't wait for a body that may never arrive.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Connection", "close")
	connection := http.NewResponseController(w)
	time.AfterFunc(farewell, func() { _ = connection.SetReadDeadline(time.Unix(1, 0)) }) // It may have ended.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	html := "<!doctype html>" + el("html", attr("lang", "en"),
		el("head", "", el("title", "", text("Lockstep: not allowed"))),
		el("body", "", el("main", "", el("h1", "", text("Not allowed")), el("p", "", text(why)))))
	_, _ = w.Write([]byte(html)) // The caller may have left.
}
