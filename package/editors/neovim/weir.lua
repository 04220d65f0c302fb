-- weir lsp for files of the type nginx, for Neovim 0.7 or newer: put this file into ~/.config/nvim/plugin/.
--
-- vim.g.weir_lsp may have `cmd` and the server's settings before this file is read:
--     vim.g.weir_lsp = { cmd = { 'weir', 'lsp' }, target = 'nginx 1.18.0', language = 'en' }

local wish = vim.g.weir_lsp or {}
local command = wish.cmd or { 'weir', 'lsp' }
local settings = {
  target = wish.target,
  language = wish.language,
  severity = wish.severity,
  prefix = wish.prefix,
  root = wish.root,
}

-- The directory of the nearest nginx.conf or .git above a file, else the file's own.
local function folder_of(name)
  local own = vim.fn.fnamemodify(name, ':p:h')
  local here = own
  while true do
    if vim.fn.filereadable(here .. '/nginx.conf') == 1 or vim.fn.isdirectory(here .. '/.git') == 1 then
      return here
    end
    local above = vim.fn.fnamemodify(here, ':h')
    if above == here then
      return own
    end
    here = above
  end
end

-- The server of each folder.
local clients = {}

local function attach(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == '' or vim.bo[buffer].buftype ~= '' then
    return
  end
  local folder = folder_of(name)
  if not clients[folder] then
    clients[folder] = vim.lsp.start_client({
      name = 'weir',
      cmd = command,
      root_dir = folder,
      workspace_folders = { { uri = vim.uri_from_fname(folder), name = folder } },
      init_options = settings,
      on_exit = function()
        clients[folder] = nil
      end,
    })
  end
  if clients[folder] then
    vim.lsp.buf_attach_client(buffer, clients[folder])
  end
end

vim.api.nvim_create_autocmd('FileType', {
  pattern = 'nginx',
  callback = function(event)
    attach(event.buf)
  end,
})
