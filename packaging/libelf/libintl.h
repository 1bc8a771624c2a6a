/* libelf's messages stay in English. */
#define dgettext(domain, text) (text)
#define gettext(text) (text)
