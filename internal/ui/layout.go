package ui

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// main is the part of a page that changes.
func (p page) main() node {
	return el("main", attr("id", "main")+attr("data-version", p.version())+attr("data-gone", p.gone)+attr("data-title", p.title), p.body)
}

// version tells two contents of a page apart.
func (p page) version() string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(p.gone + "\n" + p.title + "\n" + string(p.body))) // It never fails.
	return fmt.Sprintf("%016x", sum.Sum64())
}

// frame is the whole page.
func (s *Server) frame(p page) node {
	body := attr("data-ui", "")
	if p.gone != "" {
		body += class("gone")
	}
	return "<!doctype html>" + el("html", attr("lang", "en"),
		el("head", "",
			void("meta", attr("charset", "utf-8")),
			void("meta", attr("name", "viewport")+attr("content", "width=device-width, initial-scale=1")),
			void("meta", attr("name", "color-scheme")+attr("content", "light dark")),
			el("title", "", text(p.title+" · Lockstep")),
			s.link("icon", "favicon.svg"), s.link("stylesheet", "ui.css"),
			s.script("idiomorph.min.js"), s.script("ui.js"),
		),
		el("body", body,
			el("a", class("skip")+attr("href", "#main"), text("Skip to content")),
			s.banner(),
			el("p", attr("id", "gone")+class("gone-note")+attr("role", "status"), text(p.gone)),
			p.main(),
			el("footer", "", text("Lockstep "+s.options.Reader.Version+" · your own permissions, from this machine"), el("noscript", "", text(" · Without JavaScript, reload the page to see changes."))),
		),
	)
}

// banner is the same on every page.
func (s *Server) banner() node {
	where := "all namespaces"
	if ns := s.options.Scope.Namespace; ns != "" {
		where = "namespace " + ns
	}
	if sel := s.options.Scope.Selector; sel != nil && !sel.Empty() {
		where += ", " + sel.String()
	}
	if name := s.options.Context; name != "" {
		where = "context " + name + ", " + where
	}
	return el("header", class("banner"),
		el("a", class("brand")+attr("href", "/"), void("img", attr("src", s.files["favicon.svg"].address)+attr("alt", "")+attr("width", "22")+attr("height", "22")), text("Lockstep")),
		el("nav", attr("aria-label", "Main"), el("a", attr("href", "/"), text("Workloads"))),
		el("p", class("scope"), text(where), when(s.options.ReadOnly, el("span", class("badge"), text("read only")))),
	)
}

func (s *Server) link(rel, name string) node {
	return void("link", attr("rel", rel)+attr("href", s.files[name].address))
}

func (s *Server) script(name string) node {
	return el("script", flag("defer")+attr("src", s.files[name].address))
}

// problemPage is the page for an address that can't be shown now.
func problemPage(err error) page {
	title, status, gone := "Something went wrong", http.StatusInternalServerError, ""
	switch {
	case errors.Is(err, errNoPage):
		title, status = "No such page", http.StatusNotFound
	case errors.As(err, new(scopeError)):
		title, status = "Another namespace", http.StatusNotFound
	case apierrors.IsNotFound(err):
		title, status = "It doesn't exist", http.StatusNotFound
	case apierrors.IsForbidden(err):
		title, status = "A permission is missing", http.StatusForbidden
	case apierrors.IsUnauthorized(err):
		title, status = "The cluster doesn't accept your credentials", http.StatusUnauthorized
	case isUnanswered(err):
		title, status, gone = "The cluster doesn't answer", http.StatusServiceUnavailable, goneWords(err)
	}
	return page{title: title, status: status, gone: gone, body: together(
		el("h1", "", text(title)), notes(strings.Split(err.Error(), "\n")),
		el("p", "", el("a", attr("href", "/"), text("All workloads"))))}
}

// isUnanswered reports whether an error isn't the cluster's answer: it can't be reached, takes too
// long, or something on the way to it, such as a proxy, answers in its place.
func isUnanswered(err error) bool {
	var network interface{ Timeout() bool }
	var cause *url.Error
	var status apierrors.APIStatus
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &cause) || errors.As(err, &network) ||
		apierrors.IsTooManyRequests(err) || errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// goneWords say that the cluster doesn't answer.
func goneWords(err error) string {
	why, what := "it takes too long", "doesn't answer"
	if !errors.Is(err, context.DeadlineExceeded) {
		why = err.Error()
	}
	if isAnswer(err) {
		what = "answers with an error"
	}
	return "The cluster " + what + ", so this page may be out of date. Trying again… (" + why + ")"
}
